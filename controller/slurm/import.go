package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/controller/backend"
)

// ClusterFile writes a cluster file of what Slurm has: the live configuration, and
// what the cluster is simulated with. What has no counterpart in it is said in
// comments. Lines that begin with "#+" are examples: without that sign they
// are in force, and the file is sound too.
func ClusterFile(s Survey) string {
	f := &clusterFile{Survey: s}
	f.head()
	resources := f.resources()
	f.policy()
	f.partitions()
	f.providers(resources)
	f.simulation(resources)
	f.rest()
	return f.text.String()
}

type clusterFile struct {
	Survey
	text strings.Builder
}

// line writes a line.
func (f *clusterFile) line(format string, args ...any) { fmt.Fprintf(&f.text, format+"\n", args...) }

// note writes a comment, whatever others wrote in it.
func (f *clusterFile) note(indent, format string, args ...any) {
	f.line("%s", indent+"# "+plain.Line(fmt.Sprintf(format, args...)))
}

func (f *clusterFile) head() {
	f.note("", "The cluster %s as Slurm %s has it, by its %s. What Slurm has and this file has not is", f.Settings.Cluster, f.Settings.Version, f.Conf)
	f.note("", "said in comments. Lines that begin with #+ are examples of what may grow; mend their figures, and put them in")
	f.note("", "force with:  sed -i 's/^#+//' FILE")
	f.note("", "Try it with past jobs:  xce-elastic trace record --from-slurm --out jobs.jsonl.gz")
	f.note("", "                        xce-elastic simulate --cluster FILE --jobs jobs.jsonl.gz")
	name := nameOr(f.Settings.Cluster, "slurm")
	f.line("cluster:\n  name: %s\n  session_interval: 5s\n\nbackend: slurm\nslurm:\n  conf: %s", scalar(name), scalar(f.Conf))
}

// ours is a licence under our own name.
type ours struct {
	name string
	Licence
}

// resources writes the shared resources, and answers them.
func (f *clusterFile) resources() (all []ours) {
	names := map[string]bool{}
	var lines []string
	for _, theirs := range slices.Sorted(maps.Keys(f.Licences)) {
		short, _, _ := strings.Cut(theirs, "@")
		name := unused(nameOr(short, "licence"), names)
		if name != theirs {
			lines = append(lines, name+"="+theirs)
		}
		all = append(all, ours{name, f.Licences[theirs]})
	}
	if len(lines) > 0 {
		f.line("  licences:             # what Slurm calls them")
		for _, l := range lines {
			f.line("    - %s", scalar(l))
		}
	}
	f.line("")
	if len(all) == 0 {
		f.note("", "Slurm has no licences, so there are no shared resources.")
		return nil
	}
	f.line("resources:")
	for i, r := range all {
		f.line("  - name: %s\n    owned: %d", scalar(r.name), r.Total)
		if r.Reserved > 0 {
			f.note("    ", "%d of them are kept back by reservations now", r.Reserved)
		}
		if r.LastConsumed > 0 || r.Deficit > 0 {
			f.note("    ", "the licence server told of %d in use, of which Slurm misses %d; units for users outside go into keep_back", r.LastConsumed, r.Deficit)
		}
		if i == 0 {
			f.line("#+    elastic: {lenders: [lender], max_borrowed: %d, idle_time: 15m}", max(r.Total, 1))
		}
	}
	return all
}

func (f *clusterFile) policy() {
	f.line("")
	f.note("", "In a simulation, easy is what is nearest to sched/backfill. Live, Slurm alone decides which job starts.")
	f.line("policy: {order: easy}")
}

// partitions says of each what it is; jobs of a trace have them as queues.
func (f *clusterFile) partitions() {
	f.line("")
	f.note("", "Partitions are the queues of jobs. Each host has the feature partition:NAME; in a simulation jobs go wherever they fit,")
	f.note("", "unless a mapping says otherwise: match: {queue: main}, set: {features: [partition:main]}. Their limits are Slurm's alone:")
	for _, p := range f.Partitions {
		f.note("", "  %s%s: %s, %d nodes%s; of a job: %s, %s", p.Name, and(p.Default, " (the default)"), p.State, len(p.Nodes),
			and(len(p.NodeSets) > 0, ", node sets "+strings.Join(p.NodeSets, ", ")), nodesText(p.MaxNodes), timeText(p.MaxTime))
	}
	f.note("", "Ask for more only once enough jobs of a queue have waited for long enough:")
	i := max(slices.IndexFunc(f.Partitions, func(p Partition) bool { return p.Default }), 0)
	if i < len(f.Partitions) && cluster.ValidName(f.Partitions[i].Name) {
		f.line("#+thresholds: [{queue: %s, jobs: 1, wait: 1m}]", scalar(f.Partitions[i].Name))
	}
}

func nodesText(n int64) string {
	if n == 0 {
		return "any number of nodes"
	}
	return fmt.Sprintf("at most %d nodes", n)
}

func timeText(d cluster.Duration) string {
	if d == 0 {
		return "any length of time"
	}
	return "at most " + d.String()
}

// providers writes examples.
func (f *clusterFile) providers(resources []ours) {
	f.line("")
	f.note("", "Who lends tokens and who makes hosts: `pool` and `local` are examples of provider scripts.")
	f.line("#+hosts: {max: 10, idle_time: 10m}\n#+providers:\n#+  - {name: maker, script: local}")
	if len(resources) > 0 {
		f.line("#+  - {name: lender, script: pool}")
	}
}

// group is hosts that are alike.
type group struct {
	capacity string
	nodes    []Node
}

func (f *clusterFile) simulation(resources []ours) {
	f.line("\nsimulation:")
	f.note("  ", "zone: Europe/Berlin     # where days and hours are; UTC unless given")
	owned, away := f.groups()
	used := map[string]bool{}
	if len(owned) > 0 {
		f.line("  hosts:")
	}
	for _, g := range owned {
		name := f.hostName(g, used)
		f.about(g)
		f.line("    - {name: %s, count: %d, %s}", scalar(name), len(g.nodes), g.capacity)
	}
	for _, g := range away {
		f.note("  ", "not there now (%s): %s, each with %s", strings.ToLower(kindOf(g.nodes[0])), list(g.nodes), g.capacity)
	}
	cpus, memoryMB := f.usual()
	f.line("#+  providers:")
	f.line("#+    - name: maker\n#+      answer: {median: 1s, p95: 5s}\n#+      templates:\n#+        - {template: made, cpus: %d, memory_mb: %d, capacity: 10, price: 800000, boot: {median: 100s, p95: 240s}}", cpus, memoryMB)
	if len(resources) > 0 {
		f.line("#+    - name: lender\n#+      answer: {median: 300ms, p95: 2s}\n#+      offers:\n#+        - {resource: %s, capacity: %d, price: 1000000, minimum_hold: 15m}", scalar(resources[0].name), max(resources[0].Total, 1))
	}
}

// kindOf answers why a node is not owned: Slurm only keeps its place; empty where it is.
func kindOf(n Node) string {
	for _, kind := range []string{"FUTURE", "CLOUD", "DYNAMIC_FUTURE", "DYNAMIC_NORM"} {
		if n.Base == kind || slices.Contains(n.Flags, kind) {
			return kind
		}
	}
	return ""
}

// groups answers the nodes that are alike, those that are owned and those for which Slurm only keeps a place.
func (f *clusterFile) groups() (owned, away []group) {
	at := map[string]int{}
	for _, n := range f.Nodes {
		all := &owned
		if kindOf(n) != "" {
			all = &away
		}
		capacity := f.capacity(n)
		if capacity == "" {
			continue
		}
		key := fmt.Sprint(kindOf(n), stem(n.Name), capacity)
		i, there := at[key]
		if !there {
			i = len(*all)
			at[key], *all = i, append(*all, group{capacity: capacity})
		}
		(*all)[i].nodes = append((*all)[i].nodes, n)
	}
	return owned, away
}

// capacity writes what a node has for jobs; what cannot be said is noted.
func (f *clusterFile) capacity(n Node) string {
	if c := (cluster.Capacity{CPUs: n.CPUs, MemoryMB: n.MemoryMB}); n.CPUs < 1 || len(c.Validate("")) > 0 {
		f.note("  ", "node %s is left out: it has %d cpus and %d MB", n.Name, n.CPUs, n.MemoryMB)
		return ""
	}
	text := fmt.Sprintf("cpus: %d, memory_mb: %d", n.CPUs, n.MemoryMB)
	var countables, features []string
	for _, name := range slices.Sorted(maps.Keys(n.Gres)) {
		countables = f.sayable(n, countables, fmt.Sprintf("%s=%d", name, n.Gres[name]), func(lines []string) cluster.Problems {
			_, ps := cluster.ReadCapacity("", n.CPUs, n.MemoryMB, lines, nil)
			return ps
		})
	}
	var all []string
	for _, p := range n.Partitions {
		all = append(all, backend.InPartition+p)
	}
	for _, feature := range append(all, n.Features...) {
		features = f.sayable(n, features, feature, func(lines []string) cluster.Problems {
			_, ps := cluster.ReadCapacity("", n.CPUs, n.MemoryMB, nil, lines)
			return ps
		})
	}
	return text + lineList("countables", countables) + lineList("features", features)
}

// sayable adds a line where it is sound with the others.
func (f *clusterFile) sayable(n Node, lines []string, one string, check func([]string) cluster.Problems) []string {
	more := append(slices.Clone(lines), one)
	if len(check(more)) > 0 {
		f.note("  ", "node %s has %s too, which cannot be said here", n.Name, one)
		return lines
	}
	return more
}

func lineList(key string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = scalar(l)
	}
	return fmt.Sprintf(", %s: [%s]", key, strings.Join(texts, ", "))
}

// about says which nodes a group is, and which of them are not well.
func (f *clusterFile) about(g group) {
	f.note("    ", "%s", list(g.nodes))
	for _, n := range g.nodes {
		ill := n.Base == "DOWN" || slices.ContainsFunc(n.Flags, func(s string) bool { return s == "DRAIN" || s == "NOT_RESPONDING" || s == "FAIL" })
		if ill {
			f.note("    ", "%s is %s now%s", n.Name, strings.Join(append([]string{n.Base}, n.Flags...), "+"), and(n.Reason != "", ": "+n.Reason))
		}
	}
}

// list names nodes: all of a few, else the first and the last.
func list(nodes []Node) string {
	if len(nodes) > 4 {
		return fmt.Sprintf("%s to %s (%d)", nodes[0].Name, nodes[len(nodes)-1].Name, len(nodes))
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}

// hostName answers a name for a group under which no other host is.
func (f *clusterFile) hostName(g group, used map[string]bool) string {
	name := g.nodes[0].Name
	if len(g.nodes) > 1 {
		name = stem(name)
	}
	name = nameOr(name, "node")
	for {
		candidate := unused(name, used)
		clash := false
		for i := range g.nodes {
			one := fmt.Sprintf("%s-%d", candidate, i+1)
			clash = clash || used[one] || slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Name == one })
		}
		if !clash {
			for i := range g.nodes {
				used[fmt.Sprintf("%s-%d", candidate, i+1)] = true
			}
			return candidate
		}
	}
}

// stem answers a name without the number at its end.
func stem(name string) string {
	return strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_.")
}

// usual answers cpus and memory of the most hosts.
func (f *clusterFile) usual() (cpus, memoryMB int64) {
	count, most := map[[2]int64]int{}, 0
	best := [2]int64{4, 16384}
	for _, n := range f.Nodes {
		key := [2]int64{n.CPUs, n.MemoryMB}
		if count[key]++; count[key] > most && n.CPUs > 0 {
			best, most = key, count[key]
		}
	}
	return best[0], best[1]
}

// rest says what else Slurm does that a simulation does not know.
func (f *clusterFile) rest() {
	f.line("")
	f.note("", "What Slurm has beside that, and neither this file nor a simulation:")
	said := false
	for _, one := range foreign {
		if v := f.Settings.value(one.key); v != "" && !slices.Contains(one.usual, v) {
			f.note("", "  %s=%s: %s", one.name, v, one.what)
			said = true
		}
	}
	for _, r := range f.Reservations {
		f.note("", "  reservation %s (%s) of %d nodes%s", r.Name, r.State, len(r.Nodes), and(len(r.Licences) > 0, " and "+countList(r.Licences)))
		said = true
	}
	if !said {
		f.note("", "  nothing that it tells of")
	}
}

// foreign are settings that decide which jobs start and have no counterpart with us, but where they are as usual.
var foreign = []struct {
	key, name string
	usual     []string
	what      string
}{
	{"prioritytype", "PriorityType", []string{"priority/basic"}, "here jobs have the priority that a mapping gives them, and then come in order"},
	{"preempttype", "PreemptType", []string{"preempt/none"}, "no job stops for another here"},
	{"accountingstorageenforce", "AccountingStorageEnforce", []string{"none"}, "limits of associations and QOS are not known here"},
	{"selecttypeparameters", "SelectTypeParameters", []string{"CR_CPU_MEMORY", "CR_CORE_MEMORY"}, "here cpus and memory are counted, both of them"},
	{"topologyplugin", "TopologyPlugin", []string{"topology/none", "topology/default", "topology/flat"}, "hosts have no places in a network here"},
	{"jobsubmitplugins", "JobSubmitPlugins", nil, "what it does to jobs as they are submitted is in their accounts, and not here"},
	{"burstbuffertype", "BurstBufferType", nil, "burst buffers are not known here"},
	{"federationparameters", "FederationParameters", nil, "jobs of other clusters are not known here"},
}

// nameOr answers a name of ours that is like theirs; another where there is none.
func nameOr(theirs, other string) string {
	name := strings.Map(func(r rune) rune {
		if r < 128 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, theirs)
	name = strings.TrimLeft(name[:min(len(name), 50)], "._-")
	if !cluster.ValidName(name) {
		return other
	}
	return name
}

// unused answers a name that is not used, and uses it.
func unused(name string, used map[string]bool) string {
	one := name
	for n := 2; used[one]; n++ {
		one = fmt.Sprintf("%s.%d", name, n)
	}
	used[one] = true
	return one
}

// scalar writes a text as YAML: as it is where it can only be text.
func scalar(text string) string {
	simple := text != "" && (text[0] >= 'a' && text[0] <= 'z' || text[0] >= 'A' && text[0] <= 'Z' || text[0] == '/') && !slices.Contains(yamlWords, strings.ToLower(text))
	for _, r := range text {
		simple = simple && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/@=", r))
	}
	if simple {
		return text
	}
	return `"` + plain.EscapeYAML(strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)) + `"`
}

// yamlWords are no texts to YAML, in one of its versions.
var yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
