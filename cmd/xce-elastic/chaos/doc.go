// Package chaos runs a real cluster of processes, hurts it at random from a seed, and proves from the outside that
// nothing was lost, doubled or forgotten. The run itself is a test with the build tag e2e (`make chaos`); what it
// is made of are packages of their own: plan draws what is done, wire cuts and slows connections, mischief is a
// provider script that misbehaves, evidence is what is left of a run, and proof judges it.
package chaos
