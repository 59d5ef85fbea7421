//go:build !race

package postgrestest

const racing = false
