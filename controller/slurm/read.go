package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Nodes reads every node, hidden and future ones among them, ordered by name.
func (c Commands) Nodes(ctx context.Context) ([]Node, error) {
	return show(ctx, c, "NodeName", nodeOf, "-F", "-o", "show", "node")
}

// Node reads one node, also a hidden or future one; it is nil where Slurm has none of that name.
func (c Commands) Node(ctx context.Context, name string) (*Node, error) {
	all, err := show(ctx, c, "NodeName", nodeOf, "-F", "-o", "show", "node", name)
	var refused *Refused
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Text, "Node "+name+" not found"):
		return nil, nil
	case err != nil:
		return nil, err
	case len(all) != 1 || all[0].Name != name:
		return nil, fmt.Errorf("scontrol show node %s tells of %d nodes, or of another one", name, len(all))
	}
	return &all[0], nil
}

// Licences reads every licence, by its name in Slurm.
func (c Commands) Licences(ctx context.Context) (map[string]Licence, error) {
	all, err := show(ctx, c, "LicenseName", licenceOf, "-o", "show", "licenses")
	if err != nil {
		return nil, err
	}
	named := make(map[string]Licence, len(all))
	for _, l := range all {
		named[l.Name] = l
	}
	return named, nil
}

// Reservations reads every reservation, ordered by name.
func (c Commands) Reservations(ctx context.Context) ([]Reservation, error) {
	return show(ctx, c, "ReservationName", reservationOf, "-o", "show", "reservation")
}

// Partitions reads every partition, hidden ones among them, ordered by name.
func (c Commands) Partitions(ctx context.Context) ([]Partition, error) {
	return show(ctx, c, "PartitionName", partitionOf, "-a", "-o", "show", "partition")
}

// show runs scontrol and reads what it told.
func show[T any](ctx context.Context, c Commands, kind string, read func(*record) T, args ...string) ([]T, error) {
	out, err := c.Run(ctx, "scontrol", args...)
	if err != nil {
		return nil, err
	}
	all, err := readAll(kind, string(out), read)
	if err != nil {
		return nil, fmt.Errorf("read what scontrol %s printed: %w", strings.Join(args, " "), err)
	}
	return all, nil
}

// readAll reads records of one kind, ordered by name. One that is not understood
// refuses them all.
func readAll[T any](kind, text string, read func(*record) T) ([]T, error) {
	found, err := records(kind, text)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b record) int { return strings.Compare(a.fields[kind], b.fields[kind]) })
	all := make([]T, 0, len(found))
	for i := range found {
		all = append(all, read(&found[i]))
		if found[i].fault != nil {
			return nil, found[i].fault
		}
		if i > 0 && found[i].fields[kind] == found[i-1].fields[kind] {
			return nil, fmt.Errorf("%s=%s is told twice", kind, found[i].fields[kind])
		}
	}
	return all, nil
}

func nodeOf(r *record) Node {
	base, flags := stateOf(r.must("State"))
	gres, err := gresOf(r.text("Gres"))
	r.fail("Gres", err)
	n := Node{
		Name: r.must("NodeName"), Address: r.text("NodeAddr"), Hostname: r.text("NodeHostName"),
		CPUs: r.number("CPUTot"), MemoryMB: r.number("RealMemory") - r.number("MemSpecLimit"),
		Features: r.list("AvailableFeatures"), Gres: gres, Partitions: r.list("Partitions"),
		Base: base, Flags: flags, Reason: unsigned(r.text("Reason")),
		AllocatedCPUs: r.number("CPUAlloc"),
		Booted:        r.time("BootTime"),
	}
	r.must("CPUTot")
	if effective := r.number("CPUEfctv"); effective > 0 {
		n.CPUs = effective // without those that Slurm keeps for the system
	}
	return n
}

// unsigned answers a reason without who gave it and when.
func unsigned(reason string) string {
	if i := strings.LastIndex(reason, " ["); i >= 0 && strings.HasSuffix(reason, "]") && strings.Contains(reason[i:], "@") {
		return reason[:i]
	}
	return reason
}

// marks are the signs that some of Slurm's forms of a state end with, in place of a flag.
var marks = map[byte]string{
	'*': "NOT_RESPONDING", '~': "POWERED_DOWN", '#': "POWERING_UP", '%': "POWERING_DOWN", '!': "POWER_DOWN",
	'$': "MAINTENANCE", '@': "REBOOT_ISSUED", '^': "REBOOT_REQUESTED", '-': "PLANNED",
}

// words are states that say two things at once.
var words = map[string][]string{
	"DRAINED": {"IDLE", "DRAIN"}, "DRAINING": {"MIXED", "DRAIN"}, "ALLOC": {"ALLOCATED"}, "MIX": {"MIXED"},
}

// stateOf reads a state in any of its forms, such as "IDLE+CLOUD+DYNAMIC_NORM" or "DOWN*+DRAIN".
func stateOf(text string) (base string, flags []string) {
	for i, word := range strings.Split(strings.ToUpper(text), "+") {
		for word != "" && marks[word[len(word)-1]] != "" {
			flags = append(flags, marks[word[len(word)-1]])
			word = word[:len(word)-1]
		}
		switch two := words[word]; {
		case i == 0 && two != nil:
			base, flags = two[0], append(flags, two[1:]...)
		case i == 0:
			base = word
		case word != "":
			flags = append(flags, word)
		}
	}
	slices.Sort(flags)
	return base, slices.Compact(flags)
}

func licenceOf(r *record) Licence {
	l := Licence{
		Name: r.must("LicenseName"), Total: r.number("Total"), Used: r.number("Used"), Free: r.number("Free"), Reserved: r.number("Reserved"),
		Remote:       r.text("Remote") == "yes",
		LastConsumed: r.number("LastConsumed"), Deficit: r.number("LastDeficit"),
	}
	r.must("Total")
	r.must("Used")
	return l
}

func reservationOf(r *record) Reservation {
	return Reservation{
		Name: r.must("ReservationName"), Flags: r.list("Flags"), Licences: r.counts("Licenses"), Nodes: r.names("Nodes"),
		State: r.must("State"), Start: r.time("StartTime"), End: r.time("EndTime"), Users: r.list("Users"),
	}
}

func partitionOf(r *record) Partition {
	return Partition{
		Name: r.must("PartitionName"), Default: r.text("Default") == "YES", State: r.must("State"),
		Nodes: r.names("Nodes"), NodeSets: r.list("NodeSets"),
		MaxNodes: r.number("MaxNodes"), MaxTime: r.duration("MaxTime"), PriorityFactor: r.number("PriorityJobFactor"),
	}
}
