// Package slurm is the Slurm backend: Slurm schedules, we provide. It reads jobs,
// nodes, licences and reservations, and changes what lets jobs start on what is
// had: a reservation that keeps back tokens that are not had, and nodes that come
// and go.
//
// Everything goes through Slurm's own commands ([Commands]), since only they can do
// every write that is needed. Each runs under a deadline; one that does not answer in
// time has an outcome that is not known, and what became of it is read before
// anything is decided.
package slurm
