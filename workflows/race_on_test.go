//go:build race

package workflows_test

const racing = true
