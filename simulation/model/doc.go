// Package model holds providers as a simulation believes them to be: what they have to give over
// time and for what price, how long they take, and how often they refuse, give less, lose an answer,
// take hosts or tokens back, or lose a machine.
//
// A [Model] answers the verbs of a provider script. Everything by chance in it comes from a seed and
// from what it is for (a request id and a purpose), never from the order of calls: one request more
// leaves all others as they were. Numbers are whole; the few real ones on the way to them are
// computed step by step in a fixed order, so that they are the same on every machine.
package model
