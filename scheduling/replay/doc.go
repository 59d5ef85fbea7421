// Package replay replays a trace of jobs through the scheduling engine on a
// virtual clock, and answers when each of them started. Nothing in it reads a
// clock or waits: the same trace, machine, policy and mode give the same rows.
//
// Equal times. Under [Batch], all jobs that end at an instant end, then all that
// arrive are submitted, then one session runs. Under [Sequential], events are
// handled one by one, with a session after each: at one instant the arrivals
// first, in the order of the trace, then the completions, in the order of the
// starts. A running job whose time limit is over at the instant gives its
// capacity back before the first session of the instant, and its completion
// only runs another session. This is how many simulators work, and is meant for
// comparison with them; clusters work in batches.
package replay
