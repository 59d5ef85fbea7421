// Package cluster is the domain of XCE Elastic as plain data: hosts, jobs,
// shared resources, offers, demand, idle supply and loans, with the checks that
// make a value of them well formed.
//
// Everything that counts is an integer. Times are milliseconds since the Unix
// epoch ([Time]), lengths of time are milliseconds ([Duration]), money is
// millionths of a currency unit ([Price]). All three print as people write them,
// and times parse so too. Nothing here reads a clock, a file or the network.
package cluster
