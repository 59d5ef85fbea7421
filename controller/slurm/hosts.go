package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"xce.internal/elastic/controller/backend"
)

// mostSteps is how many changes one call makes at most; each is read back before the next one.
const mostSteps = 8

// longestReason is how much of why a host is drained Slurm is told, in bytes.
const longestReason = 200

// oneHost is the name of one host: Slurm takes lists too, and then does half of what it
// refuses.
var oneHost = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// oneGres is the name of what is counted of a node, and perhaps its type.
var oneGres = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*(:[A-Za-z_][A-Za-z0-9_.+-]*|:[0-9]+[A-Za-z_.+-][A-Za-z0-9_.+-]*)?$`)

// oneFeature is what may be a feature in Slurm, so that no constraint or command takes it for more.
var oneFeature = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.=/+-]*$`)

// Declare makes Slurm know a host that will come, or finds that it does. A dynamic one is made, one of slurm.conf is
// made ready to come. It takes jobs when its slurmd has registered and, unless it was in slurm.conf with State=FUTURE,
// after [Backend.Open]. The slurmd of one with State=CLOUD must start later than this, or Slurm goes on waiting for it
// until its ResumeTimeout is over.
func (b *Backend) Declare(ctx context.Context, m backend.Machine) error {
	o := b.Hosts[m.Template]
	if o.Kind == Cloud || o.Kind == Future {
		if b.templates[m.Name] != m.Template {
			return fmt.Errorf("host %s is none of the nodes of template %s; name it under slurm.templates[%s].nodes", m.Name, m.Template, m.Template)
		}
	}
	return b.change(ctx, m.Name, func(n *Node) ([]string, error) {
		switch o.Kind {
		case Cloud:
			return awaitCloud(n, m)
		case Future:
			return awaitFuture(n, m)
		}
		return declare(n, m, o)
	})
}

// Drain lets a host take no new jobs; those on it run on. One that someone else has
// drained is left as it is, one that is not there takes no jobs anyway.
func (b *Backend) Drain(ctx context.Context, host, why string) error {
	return b.change(ctx, host, func(n *Node) ([]string, error) { return drain(n, why), nil })
}

// Open undoes our drain of a host, and ours alone: one that someone else has drained stays closed. One that Slurm has
// put back to State=FUTURE though its slurmd runs comes back.
func (b *Backend) Open(ctx context.Context, host string) error {
	return b.change(ctx, host, func(n *Node) ([]string, error) { return open(n, host) })
}

// Remove takes a host out of Slurm, once no job is on it: it is drained first, and busy tells
// that jobs are still on it, those that are just ending among them. It is not waited for;
// a later call goes on. A host of slurm.conf stays known: one with State=CLOUD stays drained, one with
// State=FUTURE is put back to that.
func (b *Backend) Remove(ctx context.Context, host string) (busy bool, err error) {
	kind := b.kindOf(host)
	err = b.change(ctx, host, func(n *Node) ([]string, error) { return remove(n, host, kind) })
	if errors.Is(err, errBusy) || IsRefused(err, Busy) {
		return true, nil
	}
	return false, err
}

// placeholderPrefix begins the names of nodes that stand for templates.
const placeholderPrefix = "xce-"

// PlaceholderName is the name of the node that stands for a template.
func PlaceholderName(template string) string { return placeholderPrefix + template }

// Placeholder makes a node that never comes and has the shape of a template's hosts, so that jobs for such
// hosts wait while there are none; without it they are refused, or wait with the reason
// BadConstraints until it is there. One of another shape is made anew.
func (b *Backend) Placeholder(ctx context.Context, template string, m backend.Machine) error {
	m.Name, m.Template, m.Address = PlaceholderName(template), template, ""
	o := b.Hosts[template]
	if o.Kind == Cloud || o.Kind == Future {
		return nil // its hosts are in slurm.conf, and stand for themselves
	}
	return b.change(ctx, m.Name, func(n *Node) ([]string, error) { return placeholder(n, m, o) })
}

// DropPlaceholder takes the node that stands for a template away. Jobs that nothing else
// could run wait with the reason BadConstraints from then on.
func (b *Backend) DropPlaceholder(ctx context.Context, template string) error {
	name := PlaceholderName(template)
	return b.change(ctx, name, func(n *Node) ([]string, error) {
		switch {
		case n == nil:
			return nil, nil
		case !isPlaceholder(n):
			return nil, notPlaceholder(n)
		}
		return []string{"delete", "nodename=" + name}, nil
	})
}

// nameOne answers an error where a name is not that of one host.
func nameOne(host string) error {
	if !oneHost.MatchString(host) || strings.EqualFold(host, "all") {
		return fmt.Errorf("%q is no name of a host; Slurm would take it for a list or for options", host)
	}
	return nil
}

// change reads a host, does what decide says, and goes on until there is nothing left
// to do. decide gets nil where Slurm does not know the host.
func (b *Backend) change(ctx context.Context, host string, decide func(*Node) ([]string, error)) error {
	if err := nameOne(host); err != nil {
		return err
	}
	var refusal error
	for range mostSteps {
		n, err := b.Commands.Node(ctx, host)
		if err != nil {
			return err
		}
		command, err := decide(n)
		if err != nil || command == nil {
			return err
		}
		b.Log.Info("change a host", "host", host, "command", strings.Join(command, " "))
		_, refusal = b.Commands.Run(ctx, "scontrol", command...)
		switch {
		case IsRefused(refusal, Forbidden):
			return fmt.Errorf("host %s: we may not change nodes in Slurm; run as SlurmUser or as an administrator: %w", host, refusal)
		case refusal != nil && !IsRefused(refusal, NoSuch, BadState, Exists):
			return refusal
		}
	}
	if refusal == nil {
		refusal = errors.New("each was accepted, and it is not so; see the log of slurmctld")
	}
	return fmt.Errorf("host %s: not done after %d commands: %w", host, mostSteps, refusal)
}

// shape is what a node is declared with.
type shape struct {
	cpus, memoryMB int64
	features       []string         // sorted
	gres           map[string]int64 // by NAME or NAME:TYPE
	partitions     []string         // in which it must be
}

// shapeOf answers what a machine is declared with: what it has, and what its template has beside
// that in Slurm. Partitions and names are no features there.
func shapeOf(m backend.Machine, o HostOptions) (shape, error) {
	s := shape{cpus: m.CPUs, memoryMB: m.MemoryMB, gres: map[string]int64{}}
	for _, f := range append(m.FeatureNames(), o.Features...) {
		partition, isPartition := strings.CutPrefix(f, backend.InPartition)
		switch {
		case isPartition:
			s.partitions = append(s.partitions, partition)
		case strings.HasPrefix(f, backend.AtNode):
		case !oneFeature.MatchString(f):
			return shape{}, fmt.Errorf("host %s: %q cannot be a feature in Slurm; name it with letters, digits and _ . = / + - alone", m.Name, f)
		default:
			s.features = append(s.features, f)
		}
	}
	slices.Sort(s.features)
	s.features = slices.Compact(s.features)
	maps.Copy(s.gres, m.Countables)
	for name := range o.Gres { // which says of what type each is
		delete(s.gres, untyped(name))
	}
	maps.Copy(s.gres, o.Gres)
	for name, n := range s.gres {
		if !oneGres.MatchString(name) || n < 0 {
			return shape{}, fmt.Errorf("host %s: %d of %q cannot be gres in Slurm", m.Name, n, name)
		}
	}
	maps.DeleteFunc(s.gres, func(_ string, n int64) bool { return n == 0 })
	if s.cpus < 1 || s.memoryMB < 1 {
		return shape{}, fmt.Errorf("host %s: %d cpus and %d MB make no host", m.Name, s.cpus, s.memoryMB)
	}
	return s, nil
}

// untyped answers the name of NAME or NAME:TYPE.
func untyped(gres string) string {
	name, _, _ := strings.Cut(gres, ":")
	return name
}

// countables adds up the types of each name, as nodes are told of.
func (s shape) countables() map[string]int64 {
	sums := make(map[string]int64, len(s.gres))
	for name, n := range s.gres {
		sums[untyped(name)] += n
	}
	return sums
}

// lacks says in which way a node is not of a shape; "" where it is.
func (s shape) lacks(n *Node) string {
	features := slices.Sorted(slices.Values(n.Features))
	switch {
	case n.CPUs != s.cpus || n.MemoryMB != s.memoryMB:
		return fmt.Sprintf("it has %d cpus and %d MB, not %d and %d", n.CPUs, n.MemoryMB, s.cpus, s.memoryMB)
	case !slices.Equal(features, s.features):
		return fmt.Sprintf("it has the features %v, not %v", features, s.features)
	case !maps.Equal(n.Gres, s.countables()):
		return fmt.Sprintf("it has the gres %v, not %v; GresTypes in slurm.conf must name each", n.Gres, s.countables())
	}
	return ""
}

// outside says of which partition a node should be and is not; "" where there is none.
func (s shape) outside(n *Node) string {
	for _, p := range s.partitions {
		if !slices.Contains(n.Partitions, p) {
			return fmt.Sprintf("it is not in partition %s; give it a feature that a node set of that partition takes", p)
		}
	}
	return ""
}

// create makes a node that is to come: Slurm gives it no jobs until its slurmd registers.
func (s shape) create(name, address string) []string {
	command := []string{"create", "nodename=" + name, fmt.Sprintf("CPUs=%d", s.cpus), fmt.Sprintf("RealMemory=%d", s.memoryMB)}
	if len(s.features) > 0 {
		command = append(command, "Feature="+strings.Join(s.features, ","))
	}
	if len(s.gres) > 0 {
		command = append(command, "Gres="+countList(s.gres))
	}
	if address != "" {
		command = append(command, "NodeAddr="+address)
	}
	return append(command, "State=FUTURE")
}

// declare makes a dynamic node where there is none. Making one that is there says
// that it was done and does nothing, so what is there is compared. With State=CLOUD it would be given a job at once,
// which then waits for it long after it has come; with State=FUTURE it is given none before its slurmd registers,
// and drained by then it comes closed.
func declare(n *Node, m backend.Machine, o HostOptions) ([]string, error) {
	s, err := shapeOf(m, o)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(m.Name, placeholderPrefix) {
		return nil, fmt.Errorf("host %s: names that begin with %s are kept for nodes that stand for hosts to come; name template %s otherwise", m.Name, placeholderPrefix, m.Template)
	}
	if m.Address != "" && !oneHost.MatchString(strings.ReplaceAll(m.Address, ":", "-")) {
		return nil, fmt.Errorf("host %s: %q is no address", m.Name, m.Address)
	}
	switch {
	case n == nil:
		return s.create(m.Name, m.Address), nil
	case !n.dynamic():
		return nil, fmt.Errorf("host %s is in slurm.conf, so it is not ours to make; name the template's hosts otherwise, or set slurm.templates[%s].kind", m.Name, m.Template)
	case n.Booted != 0:
		return nil, nil // it came, and what it has it said itself
	case n.has("FUTURE") && !n.has("DRAIN"):
		return drain(n, "not here yet"), nil
	}
	wrong := s.lacks(n)
	if wrong == "" {
		wrong = s.outside(n)
	}
	if wrong == "" && m.Address != "" && n.Address != m.Address {
		return []string{"update", "nodename=" + m.Name, "NodeAddr=" + m.Address}, nil
	}
	if wrong != "" {
		return nil, fmt.Errorf("host %s is in Slurm, and %s; take it out and declare it again", m.Name, wrong)
	}
	return nil, nil
}

// awaitCloud makes a node of slurm.conf with State=CLOUD ready to come. Slurm does not hear the slurmd of one that
// is powered down, so it is powered up, and drained before that, so that no job is given to what is not here.
func awaitCloud(n *Node, m backend.Machine) ([]string, error) {
	update := []string{"update", "nodename=" + m.Name}
	switch {
	case n == nil || n.dynamic() || !n.has("CLOUD"):
		return nil, fmt.Errorf("host %s is not in slurm.conf with State=CLOUD; add it, and restart slurmctld", m.Name)
	case n.has("POWERING_DOWN", "POWER_DOWN"):
		return nil, &backend.NotYet{Why: fmt.Sprintf("Slurm is still switching host %s off", m.Name)}
	case n.has("POWERED_DOWN") && n.has("DOWN"):
		return append(update, "state=resume"), nil
	case n.has("POWERED_DOWN") && !n.has("DRAIN"):
		return drain(n, "not here yet"), nil
	case n.has("POWERED_DOWN") && !n.drainedByUs():
		return nil, fmt.Errorf("host %s was drained by someone else: %s; undrain it, or take it out of the template's nodes", m.Name, n.Reason)
	case n.has("POWERED_DOWN") && !n.has("POWER_UP", "POWERING_UP"):
		return append(update, "state=power_up"), nil
	case m.Address != "" && n.Address != m.Address:
		return append(update, "NodeAddr="+m.Address), nil
	}
	return nil, nil
}

// awaitFuture makes a node of slurm.conf with State=FUTURE ready to come: it comes by itself.
func awaitFuture(n *Node, m backend.Machine) ([]string, error) {
	switch {
	case n == nil || n.dynamic():
		return nil, fmt.Errorf("host %s is not in slurm.conf with State=FUTURE; add it, and restart slurmctld", m.Name)
	case n.has("FUTURE") && m.Address != "" && n.Address != m.Address:
		return []string{"update", "nodename=" + m.Name, "NodeAddr=" + m.Address}, nil
	}
	return nil, nil
}

func drain(n *Node, why string) []string {
	if n == nil || n.has("DRAIN") && n.Reason != "" {
		return nil
	}
	return []string{"update", "nodename=" + n.Name, "state=drain", "reason=" + ourReason + asReason(why)}
}

// asReason answers a text that is one line, short, and without quotes.
func asReason(why string) string {
	words := strings.FieldsFunc(why, func(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == 0x7f })
	text := strings.Join(words, " ")
	if len(text) > longestReason {
		text = strings.ToValidUTF8(text[:longestReason], "")
	}
	if text == "" {
		return "drained"
	}
	return text
}

// open undoes a drain of ours. A node that is down as well, or put off, is resumed, which undoes both and has Slurm
// ask its slurmd to register; on another one resume would be refused.
func open(n *Node, host string) ([]string, error) {
	switch {
	case n == nil:
		return nil, fmt.Errorf("host %s is not in Slurm; declare it", host)
	case n.has("DRAIN") && !n.drainedByUs(), !n.has("DRAIN", "FUTURE"):
		return nil, nil
	case n.has("FUTURE", "DOWN"):
		return []string{"update", "nodename=" + host, "state=resume"}, nil
	}
	return []string{"update", "nodename=" + host, "state=undrain"}, nil
}

// errBusy is that jobs are on a host.
var errBusy = errors.New("jobs are on the host")

// remove takes a node out, step by step. One that slurm.conf names is never deleted: slurmctld would not start again.
func remove(n *Node, host string, kind HostKind) ([]string, error) {
	switch {
	case n == nil || n.has("FUTURE") && kind == Future:
		return nil, nil
	case !n.dynamic() && kind == "":
		return nil, fmt.Errorf("host %s is in slurm.conf and not ours to take out; if it is, name it in nodes of its template under slurm.templates", host)
	case !n.has("DRAIN"):
		return drain(n, "leaves"), nil
	case n.busy():
		return nil, errBusy
	case n.dynamic():
		return []string{"delete", "nodename=" + host}, nil
	case kind == Future:
		return []string{"update", "nodename=" + host, "state=future"}, nil
	}
	return nil, nil // Slurm gives no job to one that is drained; powering it down would undo that
}

func isPlaceholder(n *Node) bool { return n.dynamic() && n.has("FUTURE") }

func notPlaceholder(n *Node) error {
	return fmt.Errorf("node %s is %s and should stand for hosts to come; rename it, since that name is kept for placeholders", n.Name, n.state())
}

func placeholder(n *Node, m backend.Machine, o HostOptions) ([]string, error) {
	s, err := shapeOf(m, o)
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return s.create(m.Name, ""), nil
	case !isPlaceholder(n):
		return nil, notPlaceholder(n)
	case s.lacks(n) != "":
		return []string{"delete", "nodename=" + m.Name}, nil
	case s.outside(n) != "":
		return nil, fmt.Errorf("template %s: node %s stands for its hosts, and %s", m.Template, m.Name, s.outside(n))
	}
	return nil, nil
}
