// Package simulation runs a cluster on a virtual clock: the sessions of package scheduling, the rules
// of ledger and policy, and the stories of workflows, the very functions that run live. What is its
// own is the clock, the order of things at one instant, the books in memory and the job loop.
//
// # Time
//
// Time jumps from event to event, in milliseconds. At one instant jobs end first, in the order of their starts;
// then jobs arrive, in the order of the trace; then stories and providers go on, in the order in which they
// were to; then, if anything changed, one session runs; then stories are told what it found. A step of a
// story takes as long as [Steps] and the provider's model say, and has its effect half way. A story that is
// told something goes on at once, before who told it.
//
// # Determinism
//
// The same farm, trace and seed give the same [Result] to the last bit, on any machine and with any
// number of processors: one thing happens at a time, nothing depends on the order of maps, and
// chance is drawn by purpose (package model).
//
// # Surveys that find nothing
//
// A provider's story surveys its provider all the time. Where neither the provider nor the books
// changed since the last survey, and nothing is in doubt or demanded, the next ones would find the
// same: they are counted as made, and the story sleeps until something changes. If it does in the midst
// of a survey, the story takes the survey up where it would be.
//
// So does a host's story, which asks again and again whether the host may go: while jobs run on it, that is in vain.
//
// # Sessions that find nothing
//
// A controller has a session after everything that it records, and one in every interval. Of the latter, those
// are left out that would find what the last one did: see plan, which knows what can move with the time alone.
//
// # Beside the simulator
//
// [xce.internal/elastic/simulation/timeskip] runs real workflows and the real controller on one
// virtual clock; tests hold the simulator against it, change by change.
package simulation
