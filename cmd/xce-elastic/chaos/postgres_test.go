//go:build e2e

package chaos

// postgres is where two controllers keep their state; where it is empty, one keeps it in a file.
var postgres = ""
