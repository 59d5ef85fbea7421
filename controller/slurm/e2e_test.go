//go:build e2e

package slurm

// endToEnd has the slow parts of tests run too.
const endToEnd = true
