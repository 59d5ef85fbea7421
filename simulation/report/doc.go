// Package report tells what came of a simulation: as a page, as files for programs,
// in a terminal, against another run, and as the frontier of many. All of it is a
// function of [simulation.Result]: the same result gives the same bytes.
//
// [Summarize] is where the figures come from; the other forms show them. Waits are
// from a job's arrival until its last start, of jobs that have started. The bounded
// slowdown of a job that has ended is max(1, (wait + run) / max(run, 10 s)), in
// thousandths. Quantiles are values that occur. Lengths of time are in
// milliseconds, money is in millionths of a currency unit, sums over the time are
// in unit-milliseconds.
//
// # CSV
//
// [CSV] writes these files; columns are only ever added, at the end. Instants are
// RFC 3339 in UTC with milliseconds, empty where there is none; a column whose name
// ends in _ms is a whole number of milliseconds, in time_ms since the Unix epoch.
// Texts from the trace stand as they are.
//
//	summary.csv    name, unit, value: the figures of Summary.Figures
//	jobs.csv       id, submit, start, end, wait_ms, run_ms, procs, queue, user,
//	               state, cause, requeues: a row per job, in the order of arrival.
//	               wait_ms is empty if the job has not started, run_ms if it has
//	               not ended; state is absent, impossible, waiting, running, done
//	               or timed out
//	queue.csv      time, time_ms, waiting, running: jobs, from a time on
//	resources.csv  resource, time, time_ms, total, owned, borrowed, lent, in_use,
//	               waiting: units, from a time on
//	hosts.csv      time, time_ms, owned_busy, owned_idle, requested, expected, busy,
//	               idle, draining, leaving: hosts by state, from a time on
//	loans.csv      id, provider, resource, units, granted, requested, committed,
//	               closed, held_unit_ms, cost_millionths, why
//	machines.csv   id, template, provider, name, requested, expected, joined, left,
//	               closed, busy_ms, cost_millionths, why: elastic hosts
//	orders.csv     time, do, subject, became: an operator's orders
//	changes.csv    time, time_ms, subject, before, after, cause
//
// # JSON
//
// [JSON] writes one object that has everything; [ReadJSON] reads it again, and with
// it [Compare] can compare saved runs. Each row of a list stands on a line of its
// own. What there may be millions of is in columns: "jobs" is a list of blocks with
// an array of numbers per column, in which "submit" is the difference to the job
// before, "wait" and "run" are milliseconds (-1 where there is none), and "shape"
// is a place, from 1, in the list "shapes". Points of series are differences to
// the points before, too. "summary" has the figures of [Summary]; it is not read.
package report
