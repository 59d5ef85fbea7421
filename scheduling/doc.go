// Package scheduling is the session: one pass over the waiting jobs of a
// cluster. [Run] is a pure function of its input: no clock, no randomness, no map
// order, no I/O; the same input gives the same output to the byte. An [Engine] is
// the same function for callers that keep a cluster's state from session to
// session, such as the simulator.
//
// # Order
//
// Jobs are taken by priority, the highest first, then by id, which is the order
// of arrival. A job takes all its hosts and all its tokens, or nothing. It tries
// kinds of hosts with nothing that it does not need before others, among them the
// hosts that the cluster owns before elastic ones, and full hosts before empty
// ones, so that elastic hosts fall idle. Elements of an array are jobs of their own.
//
// # Real capacity
//
// What a job that cannot start does to those after it depends on the [Policy]:
//
//   - fcfs: one that waits for a host makes every later job wait, unless the hosts
//     could not take it even when empty (one that needs several waits also for
//     those that are coming or could be made). One that waits for tokens only keeps
//     the free units of those to itself, of its first alternative where it has
//     several, and lets others pass that need none of them.
//   - easy: the first one gets a reservation, the earliest time at which its hosts
//     and tokens are there together if every running job keeps its time limit.
//     Others may start if they do not delay that. The reservation is made anew in
//     every session.
//   - conservative: every one gets a reservation, up to the depth. It stands,
//     whatever arrives later; when something has become free, each is moved to an
//     earlier time if one is left among all others, in the order of the jobs, once.
//     A promise is broken only by a job that runs beyond its limit.
//
// Reservations count on hosts that have joined, and under easy, for jobs that run on
// several hosts, on those that are expected; never on what could be made. A job without a time limit counts as one that never ends, and one
// that is past its limit as one that ends any moment, but not now.
//
// # Equal times
//
// All events of one instant are applied first, ends before arrivals; then one
// session runs. Package replay has a sequential mode beside that: events one by
// one, arrivals first, with a session after each, in which a job whose limit ends
// at that instant counts as ended. Other simulators work so.
//
// # Virtual supply
//
// Only after real capacity failed, waiting jobs are tried on what is not there
// yet: first on what is coming (expected hosts, requested loans), then on hosts
// that templates could make and tokens that offers could lend, within headroom,
// quotas and limits. A job that lacks both gets both or neither: no host is asked
// for a job that waits for a token no one can lend, and no token for a job that
// has no host to run on. What could not be had whole raises no demand, and keeps
// later jobs from the tokens that it waits for.
//
// What is here already for a job that waits for the rest is kept for it, tokens and
// hosts alike, however long the rest takes; see [Result.Halves]. It is no idle
// supply. Once the rest cannot be had any more, and nothing else would do in its
// place, the half that is here lies idle from that session on.
//
// A template whose last hosts had less than it says is believed to make such hosts;
// see [cluster.Template.Learn]. What it says is what a quota is charged with.
//
// Tokens are given in the order of the jobs, from the cheapest lender first. Then
// all jobs that have theirs are packed onto hosts together, those first that few
// templates allow, and among them the large ones. For the hosts that lack, a
// handful of templates is tried out, with large jobs first and with jobs mixed so
// that nothing of a host stays unused; the cheapest whole wins, then what wastes
// least, then the preferred template. What a host costs is its price until its
// minimum hold and the jobs at hand are over. At the end each host is exchanged for
// the cheapest template that takes what is on it. Where not all find a place, the
// jobs take the hosts that were chosen once more, strictly in order.
//
// A job whose reservation comes before anything new could arrive asks for nothing,
// and neither do jobs in a queue or for a resource of which too few have waited
// long enough; see [Threshold].
//
// # Cost
//
// Jobs with the same needs form a class: where one of them finds no place, no later
// one is tried. What is free on hosts is kept in trees, in which the first host that
// fits is found without looking at all. So a session costs what there are kinds of
// jobs and what it starts, not jobs times hosts.
//
// An [Engine] keeps from session to session what a session needs: the order of the
// classes, and for every host and pool what its running jobs will give back, in the
// order of time. Steps of a timeline are made only as far as somebody looks. Once easy
// has made its reservation, classes are passed over, whole blocks of them at once, for
// which no host has room. [Engine.Decide] leaves the words out, and [Engine.Place] what is not there yet.
package scheduling
