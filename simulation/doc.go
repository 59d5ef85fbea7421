// Package simulation is the simulator's place: whatever runs the cluster's rules
// and stories on a virtual clock belongs under it.
//
// Today it holds tests. They run the real workflows, activities and controller
// for days of virtual time ([xce.internal/elastic/simulation/timeskip]) against
// lenders in memory that misbehave as they are told
// ([xce.internal/elastic/simulation/lender]), and judge by two books that no
// story writes: the controller's audit records and what the lenders lent.
package simulation
