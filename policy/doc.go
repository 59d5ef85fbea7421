// Package policy turns what a session found into decisions. Of tokens: which loans to
// take for a demand ([Borrow]), how long to leave a lender alone that refused
// ([Backoff]), when a loan may go back ([Returnable]) and which of several
// goes first ([Share]). Of hosts: which to ask for ([Provision]) within which limits
// of the cluster ([Limits]), when one goes back ([ReturnHost]), and whether a
// provider's list of them is believed ([Inventory.Doubt]). All of it is pure: (state,
// now) in, decisions out.
package policy
