//go:build !race

package simulation_test

const racing = false
