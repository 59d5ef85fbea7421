//go:build !e2e

package slurmtest

// endToEnd has the slow tests run too.
const endToEnd = false
