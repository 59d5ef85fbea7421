// Package lender is a lender in memory that answers as its provider script
// would, and misbehaves as it is told: for simulations and tests.
//
// It keeps the contract: a request id is granted once, a return has an absolute
// target, a cancelled id is never granted late. What it does wrong is said by
// [Lender.Mishap], call by call, or done to its books by hand ([Lender.Lose],
// [Lender.Plant]). It counts in the lender's units.
//
// A Lender has no goroutines and no locks: what becomes due (a pending grant, a
// late one) happens at the next look at it, dated when it was due.
package lender
