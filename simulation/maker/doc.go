// Package maker is a provider of hosts in memory, as the activities know one:
// machines that are asked for, made, listed and given back, and everything that
// a bad day may bring. A machine is made and ended, and does nothing by itself:
// whoever owns the maker has it boot and join.
//
// It keeps the contract as package lender does: a request id is granted once and
// never again, what is cancelled is never granted late, and a return of hosts that
// are not there any more changes nothing.
package maker
