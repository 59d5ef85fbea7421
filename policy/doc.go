// Package policy turns what a session found into decisions: which loans to take
// for a demand ([Borrow]), how long to leave a lender alone that refused
// ([Backoff]), when a loan may go back ([Returnable]) and which of several
// goes first ([Share]). All of it is pure: (state, now) in, decisions out.
package policy
