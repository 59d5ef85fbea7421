// Package timeskip runs real workflows and real activities of many Temporal executions on one
// virtual clock: weeks in seconds, and the same seed gives the same trace to the last bit. It
// stands on the SDK's test environment and takes away what depends there on the Go scheduler or on
// real time.
//
// # Use
//
//	report := timeskip.Run(t, timeskip.Options{Seed: 1, Limit: 72 * time.Hour},
//		func(t *testing.T, h *timeskip.Harness) {
//			world := newWorld(h.Now) // the clock of all code under test
//			h.RegisterWorkflow(loan.Workflow, "loan")
//			h.RegisterActivity(world.Request, "Request")
//			if err := h.Start("loan/vcs/pool-1", "loan", input); err != nil {
//				t.Fatal(err)
//			}
//			h.At(2*time.Hour, func() { _ = h.Signal("loan/vcs/pool-1", "recalled", nil) })
//			h.Until(func() bool { return world.Empty() })
//		})
//	// report.Trace, report.Workflow("loan/vcs/pool-1").Err
//
// The setup function registers and scripts; the run begins when it returns. From then on
// everything happens one step after another: scripted actions, activity bodies, conditions. A
// world needs no locks. The methods of the harness may be called from the setup function and from
// these steps, and nowhere else; Now may be called from anywhere. A step must not wait for another step.
//
// # What is real, what is modelled
//
// Workflow code, data conversion, signals, queries, updates with validators, child workflows and
// continue-as-new are the SDK's own. Workflows that the harness starts are independent of each
// other; inside they are abandoned children of one root, which workflow.GetInfo hides.
//
// An activity body runs at a virtual instant of its own, within the latency that [Options.Latency]
// gives for its type, and its answer reaches the workflow at a later one; other things may happen
// in between, as they do in production. Time does not pass inside a body.
//
// Attempts follow the retry policy that the workflow gave, with the server's defaults: without end
// unless it says otherwise. Details of heartbeats are there for the next attempt. An attempt in
// flight when its activity is cancelled, or its workflow closes, still runs; nobody hears its
// answer, and no other attempt follows. A body that panics fails the test.
//
// [Options.Faults] makes a body run twice, loses its answer, or does not run it. The workflow then
// waits out its StartToClose timeout, as it would.
//
// # Time
//
// Scripted actions run within a millisecond after the instant they ask for, by a seeded shift, and
// in the order of their registration. No two actions or activity steps share an instant, and
// workflows that were not woken together do not share one by accident.
//
// time.Now inside a run is not the virtual time: it is the clock of a testing/synctest bubble, in
// the year 2000. So is every timeout and ticker of the time package: drive loops by
// [Harness.Every], and give Now to the code under test. CURRENT_TIMESTAMP of SQLite is real time.
//
// With [Options.Exact], nothing is shifted or drawn: what asks for an instant gets it, in an order
// that the test gives, so that another clock can be held against the run.
//
// # Services with goroutines
//
// A database/sql pool, an HTTP server and the like are opened in the setup function or later, and
// closed by a t.Cleanup of the t that setup was given. What is left open at the end panics, with
// its stack. modernc.org/sqlite works, in memory and on a file, with one connection, also with
// contexts that have deadlines. HTTP over loopback works; while a goroutine waits for the network,
// the bubble's clock stands still, so that timeouts of clients do not fire.
//
// # Limits
//
//   - At most some 400 wake-ups at one instant: the environment's queue has 1,000 places, and only
//     the loop that fills it empties it. Actions of the harness are never at one instant.
//   - Local activities, sessions and Nexus operations run as in the SDK's environment: on
//     goroutines and in real time. Activities cannot answer with ErrResultPending.
//   - Run ids and activity ids are small counters that repeat with the seed, not the server's.
//   - WaitForCancellation of activities has no effect: the workflow sees the cancellation at once.
//   - Execution timeouts of workflows are not enforced.
//   - Each continue-as-new leaves one goroutine of the SDK parked for ever, with what it refers to.
//   - go test -race finds nothing with SDK v1.51.0, and takes about six times as long.
package timeskip
