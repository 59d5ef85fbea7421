// Package farm is what provider scripts share that make hosts on this machine: the
// rules and the record of hosts, the verbs of the contract, and those of the operator.
//
// Whoever calls such a script also tends the hosts, as a machine's service manager
// would: what was granted and does not run is started, and what is to end is ended. So
// the script, the hosts and the machine may die at any moment. Every change is also one
// line of JSON in the journal; where a host ends, it says how many jobs ran on it then.
//
// Settings come from the environment, under XCE_ and the script's name in capitals:
//
//	_FOLDER      the folder that SCRIPT init has made
//	_CLUSTER     the cluster that asks
//
// For try-outs of what can go wrong:
//
//	_LATENCY_MS  acts, then sleeps that long before it answers
//	_PENDING_MS  answers a request with pending and grants it that long after
//	_FAIL        each Nth call acts, then ends with exit status 1 and no answer
//	_LIST        fail, empty or cut: what list answers instead of the truth
package farm

import (
	"context"
	"fmt"
	"io"
	"strings"

	"xce.internal/elastic/providers/scripts/dialogue"
)

// Kind is a kind of hosts, and the script that makes them.
type Kind struct {
	Name  string // of the script
	Usage string
	// Mark is a variable in the environment of every process of a host, with the host's folder or a
	// path in it.
	Mark string
	// Job is the command of the processes that are counted as jobs; empty where those are all but the first.
	Job string
	// Joins tells that a host cannot do without a join message.
	Joins bool
	// Restarts tells that a host whose first process has ended is started again. It has failed else,
	// where there is a file [Booted] in its folder.
	Restarts bool
	// Hosts reads from the environment how hosts run.
	Hosts func() (Hosts, error)
}

// Booted is the file by which a host that is not started again tells that it was up.
const Booted = "booted"

// Hosts is how hosts of a kind run.
type Hosts interface {
	// Place gives a new host its name and address, where it has them; the others are there.
	Place(h *Host, others []Host) error
	// Arguments are the program, with its arguments, that a host's first process becomes.
	Arguments(folder string, h *Host) []string
}

func (k Kind) prefix() string { return "XCE_" + strings.ToUpper(k.Name) }

// Variable is the name of a setting of the script.
func (k Kind) Variable(setting string) string { return k.prefix() + "_" + setting }

func (k Kind) stateName() string { return k.Name + ".json" }

// Run does what the command line says, and answers the exit status.
func (k Kind) Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "boot" {
		fmt.Fprintf(stderr, "%s: %v\n", k.Name, boot(args[1:])) // it returns only when it fails
		return 1
	}
	script := dialogue.Script{Name: k.Name, Usage: k.Usage, Act: dialogue.Act(k.settings, contractVerbs), Operate: k.operatorVerbs()}
	return script.Run(ctx, args, stdin, stdout, stderr)
}
