// Command slurmhost is a provider script: a provider of hosts of a Slurm cluster on
// this machine, to try one out with hosts that come and go. Each host is a slurmd of a
// dynamic node at a loopback address of its own, and says of itself what its template
// says, so that one machine can stand for many.
//
// Called as slurmhost VERB it speaks the provider-script contract, version 1. It reads
// its settings from the environment:
//
//	XCE_SLURMHOST_FOLDER     the folder that slurmhost init has made; its path must be short, since sockets are in it
//	XCE_SLURMHOST_CLUSTER    the cluster that asks
//	XCE_SLURMHOST_CONF       slurm.conf of the cluster, with CommunicationParameters=NoInAddrAny and DebugFlags=NO_CONF_HASH
//	XCE_SLURMHOST_ADDRESSES  the addresses of hosts, such as 127.0.64.0/24; the default is 127.0.64.0/18
//
// and, for try-outs, XCE_SLURMHOST_LATENCY_MS, _PENDING_MS, _FAIL and _LIST as those of
// the script local.
//
// The node of a host is named by the last part of the request id: big-7 of host/big-7.
// A host waits with its slurmd until Slurm knows the node under the host's address,
// since slurmd registers once and ends, or is never heard, where it does not. A host
// whose slurmd has died is gone, as a machine without power is: it is not started again.
//
// The operator's verbs are init, set, show, reclaim, crash and stop; slurmhost help lists their flags.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/farm"
)

const usage = `usage: slurmhost VERB   one JSON object on stdin, one on stdout; VERB is one of
                            describe, request, status, return, list
       slurmhost init    --folder F --template big=4:4000 --capacity big=10 [--price big=250000]
                         [--hold big=60] [--billing big=0] [--feature big=avx512]
                         [--preference big=1] [--latency 500ms]
       slurmhost set     --folder F [--capacity big=0] [--refuse big=quota] [--joins big=1:2000]
                         [--never-joins big=1] [--latency 5s] [--list good|fail|empty|cut]
       slurmhost show    --folder F [-o table|json]
       slurmhost reclaim --folder F [--grace 30s] HOST
       slurmhost crash   --folder F HOST
       slurmhost stop    --folder F
HOST is the id of an instance or of a request.
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "node" {
		fmt.Fprintln(os.Stderr, "slurmhost:", runNode(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(slurmhost.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// slurmhost marks its processes by SLURM_CONF, since that is what slurmd passes on to all that it starts.
var slurmhost = farm.Kind{Name: "slurmhost", Usage: usage, Mark: "SLURM_CONF", Job: "slurmstepd", Hosts: nodes}

// node is how a host runs: as slurmd of a dynamic node.
type node struct {
	program, conf string
	addresses     netip.Prefix
}

const anyAddress = "127.0.64.0/18"

func nodes() (farm.Hosts, error) {
	conf, addresses := os.Getenv("XCE_SLURMHOST_CONF"), os.Getenv("XCE_SLURMHOST_ADDRESSES")
	if _, err := os.Stat(conf); err != nil {
		return nil, fmt.Errorf("XCE_SLURMHOST_CONF=%q: %w: give the path of the cluster's slurm.conf", conf, err)
	}
	if addresses == "" {
		addresses = anyAddress
	}
	prefix, err := netip.ParsePrefix(addresses)
	if err == nil && !(prefix.Addr().Is4() && prefix.Addr().IsLoopback() && prefix.Bits() < 32) {
		err = errors.New("they are not several of this machine alone")
	}
	if err != nil {
		return nil, fmt.Errorf("XCE_SLURMHOST_ADDRESSES=%q: %w: give a range such as %s", addresses, err, anyAddress)
	}
	program, err := os.Executable()
	return node{program, conf, prefix.Masked()}, err
}

// Place implements farm.Hosts. A node's name is the last part of its request's id; two hosts can have neither
// one name nor one address. Where to look for an address follows from the request's id, so that the one of a host that
// has died is not given away at once: Slurm would send what is for that one to the new one.
func (n node) Place(h *farm.Host, others []farm.Host) error {
	name := h.RequestID[strings.LastIndexByte(h.RequestID, '/')+1:]
	if !cluster.ValidName(name) {
		return dialogue.Refusef("request %s names no node: let its last part be a name, as in host/big-7", h.RequestID)
	}
	if slices.ContainsFunc(others, func(o farm.Host) bool { return o.Name == name }) {
		return dialogue.Refusef("there is a node %s already: let the last part of the request id be another", name)
	}
	id := fnv.New32a()
	_, _ = id.Write([]byte(h.RequestID))
	for room, tried := n.room(), uint32(0); tried < room; tried++ {
		address := n.address((id.Sum32()%room + tried) % room)
		if !slices.ContainsFunc(others, func(o farm.Host) bool { return o.Address == address }) {
			h.Name, h.Address = name, address
			return nil
		}
	}
	return fmt.Errorf("the addresses %s are all in use: give more in XCE_SLURMHOST_ADDRESSES", n.addresses)
}

// room is how many addresses there are; the first of the range is none.
func (n node) room() uint32 { return 1<<(32-n.addresses.Bits()) - 1 }

func (n node) address(i uint32) string {
	network := n.addresses.Addr().As4()
	var address [4]byte
	binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(network[:])+1+i)
	return netip.AddrFrom4(address).String()
}

// Arguments implements farm.Hosts.
func (n node) Arguments(_ string, h *farm.Host) []string {
	has := fmt.Sprintf("CPUs=%d RealMemory=%d", h.Size.CPUs, h.Size.MemoryMB)
	features := slices.DeleteFunc(slices.Clone(h.Features), func(f string) bool { return strings.Contains(f, "=") })
	if len(features) > 0 {
		has += " Feature=" + strings.Join(features, ",")
	}
	return []string{n.program, "node", n.conf, h.Name, h.Address, has}
}
