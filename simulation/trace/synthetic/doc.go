// Package synthetic makes up workloads: jobs that nobody submitted, but that come, ask and run
// as those of a model do. [Generate] answers them as a trace, which is simulated,
// converted and checked as one that was read from accounting files.
//
// # Kinds
//
//   - lublin: the model that Lublin and Feitelson published in 2003 for parallel machines.
//     Sizes are a two-stage uniform of log2, with shares of serial jobs and of powers of
//     two; run times are exponentials of a hyper-gamma whose mix depends on the size; gaps
//     between arrivals are exponentials of a gamma that are spent faster at noon than at night.
//   - eda: an EDA farm. Regressions of hundreds of short jobs after check-ins and at night,
//     synthesis and timing in between, few place and route runs of days. A [Profile] says
//     what there is.
//   - poisson: exponential gaps and exponential run times of single processors, for which
//     queueing theory has formulas.
//   - long-queue: users who submit hundreds or thousands of like jobs at once to a large
//     machine, so that at times tens of thousands wait.
//
// # What is the same, and where
//
// The same options give the same jobs, to the last bit, on every machine: every
// draw is made from the seed, the number of what it is drawn for and the purpose, and the
// arithmetic is of operations that IEEE 754 defines exactly (sum, product, quotient, root), none
// of them fused; exponentials and logarithms are made of those here, since those of package
// math differ between processors. Times are rounded to whole seconds, those of poisson to
// milliseconds.
//
// The first jobs of a longer trace are those of a shorter one where jobs come one by one, in one
// class and at a rate that is known before: under poisson without span, and under
// lublin of one class without span and load. Another
// version of this program may make other jobs; a trace that must stay is written to a file.
package synthetic
