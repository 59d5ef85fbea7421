//go:build !race

package replay_test

const racing = false
