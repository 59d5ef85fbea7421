//go:build race

package postgrestest

const racing = true
