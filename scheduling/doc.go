// Package scheduling is the session: one pass over the waiting jobs of a
// cluster. It is a pure function of its input ([Run]): no clock, no randomness,
// no map order, no I/O; the same input gives the same output to the byte.
//
// Order. Jobs are taken by priority, the highest first, then by order of
// arrival. A job takes a host and all its tokens, or nothing.
//
// Waiting. A job that waits for a host makes every later job wait behind it,
// unless it is larger than every host: then a larger one must join, and no one
// else waits for that. A job that waits for tokens only lets others pass that
// need none of the resources it waits for, and reserves the free units of those;
// so none starves.
//
// Virtual supply. Only after real capacity failed, jobs that lack nothing but
// tokens are tried once more, in the same order, on what is left of the hosts:
// first with the units that are coming (requested loans), then with the
// headroom of offers, in the lenders' order of preference. What the headroom
// would let run now is the demand. A job that cannot be served so whole raises
// none, and neither do later jobs for the resources it waits for. One that finds
// no host any more raises none, and neither do all later jobs. So whoever raised
// demand runs once everything requested and demanded is there.
package scheduling
