package slurm

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

func nodeIn(state, reason string) *Node {
	n := &Node{
		Name: "h1", Address: "h1", CPUs: 4, MemoryMB: 4000, Features: []string{"x86", "dyn"}, Gres: map[string]int64{"gpu": 2},
		Partitions: []string{"main"}, Reason: reason, Booted: 1,
	}
	n.Base, n.Flags = stateOf(state)
	if n.has("POWERED_DOWN", "FUTURE") {
		n.Booted = 0
	}
	return n
}

var (
	ofH1   = backend.Machine{Name: "h1", Template: "t", Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 4000, Countables: map[string]int64{"gpu": 2, "none": 0}, Features: []string{"x86", "partition:main", "node:h1"}}}
	andDyn = HostOptions{Features: []string{"dyn"}}
)

const (
	made    = "FUTURE+DYNAMIC_NORM"
	awaited = "FUTURE+DRAIN+DYNAMIC_NORM"
	notHere = "xce: not here yet"
	joins   = "IDLE+DYNAMIC_NORM"
)

func TestPlansForHosts(t *testing.T) {
	other, elsewhere, addressed := nodeIn(awaited, notHere), nodeIn(awaited, notHere), ofH1
	other.CPUs = 8
	elsewhere.Partitions = nil
	addressed.Address = "10.0.0.7"
	stand := ofH1
	stand.Name = "xce-h1"
	future := nodeIn("FUTURE", "")
	typed := HostOptions{Features: []string{"dyn"}, Gres: map[string]int64{"gpu:a100": 2, "gpu:v100": 1, "fpga": 1}}
	withTypes, standsWithTypes := nodeIn(awaited, ""), nodeIn("FUTURE+DYNAMIC_NORM", "")
	withTypes.Gres = map[string]int64{"gpu": 3, "fpga": 1}
	standsWithTypes.Gres = withTypes.Gres
	for name, c := range map[string]struct {
		plan func() ([]string, error)
		want string // the command, or part of the error after "!"
	}{
		"declare absent":            {func() ([]string, error) { return declare(nil, ofH1, andDyn) }, "create nodename=h1 CPUs=4 RealMemory=4000 Feature=dyn,x86 Gres=gpu:2 State=FUTURE"},
		"declare at an address":     {func() ([]string, error) { return declare(nil, addressed, andDyn) }, "create nodename=h1 CPUs=4 RealMemory=4000 Feature=dyn,x86 Gres=gpu:2 NodeAddr=10.0.0.7 State=FUTURE"},
		"declare one just made":     {func() ([]string, error) { return declare(nodeIn(made, ""), ofH1, andDyn) }, "update nodename=h1 state=drain reason=xce: not here yet"},
		"declare again":             {func() ([]string, error) { return declare(nodeIn(awaited, notHere), ofH1, andDyn) }, ""},
		"declare one that came":     {func() ([]string, error) { return declare(nodeIn(joins, ""), ofH1, andDyn) }, ""},
		"declare another address":   {func() ([]string, error) { return declare(nodeIn(awaited, notHere), addressed, andDyn) }, "update nodename=h1 NodeAddr=10.0.0.7"},
		"declare another shape":     {func() ([]string, error) { return declare(other, ofH1, andDyn) }, "!it has 8 cpus and 4000 MB, not 4 and 4000"},
		"declare without a feature": {func() ([]string, error) { return declare(nodeIn(awaited, notHere), ofH1, HostOptions{}) }, "!it has the features [dyn x86], not [x86]"},
		"declare other gres": {func() ([]string, error) {
			return declare(nodeIn(awaited, notHere), ofH1, HostOptions{Features: []string{"dyn"}, Gres: map[string]int64{"fpga": 1}})
		}, "!GresTypes"},
		"declare types":         {func() ([]string, error) { return declare(nil, ofH1, typed) }, "create nodename=h1 CPUs=4 RealMemory=4000 Feature=dyn,x86 Gres=fpga:1,gpu:a100:2,gpu:v100:1 State=FUTURE"},
		"declare types again":   {func() ([]string, error) { return declare(withTypes, ofH1, typed) }, ""},
		"declare other types":   {func() ([]string, error) { return declare(nodeIn(awaited, ""), ofH1, typed) }, "!it has the gres map[gpu:2], not map[fpga:1 gpu:3]"},
		"declare odd gres":      {func() ([]string, error) { return declare(nil, ofH1, HostOptions{Gres: map[string]int64{"gpu:a:b": 1}}) }, "!cannot be gres"},
		"declare a count":       {func() ([]string, error) { return declare(nil, ofH1, HostOptions{Gres: map[string]int64{"gpu:7": 1}}) }, "!cannot be gres"},
		"declare outside":       {func() ([]string, error) { return declare(elsewhere, ofH1, andDyn) }, "!not in partition main; give it a feature"},
		"declare a static one":  {func() ([]string, error) { return declare(nodeIn("IDLE", ""), ofH1, andDyn) }, "!is in slurm.conf"},
		"declare a placeholder": {func() ([]string, error) { return declare(nil, stand, andDyn) }, "!kept for nodes that stand for hosts to come"},
		"declare odd features":  {func() ([]string, error) { return declare(nil, ofH1, HostOptions{Features: []string{"a,b"}}) }, "!cannot be a feature"},
		"declare nothing": {func() ([]string, error) {
			return declare(nil, backend.Machine{Name: "h1"}, HostOptions{})
		}, "!make no host"},

		"cloud away":                    {func() ([]string, error) { return awaitCloud(nodeIn("IDLE+CLOUD+POWERED_DOWN", ""), ofH1) }, "update nodename=h1 state=drain reason=xce: not here yet"},
		"cloud away, drained":           {func() ([]string, error) { return awaitCloud(nodeIn("IDLE+CLOUD+DRAIN+POWERED_DOWN", "xce: x"), ofH1) }, "update nodename=h1 state=power_up"},
		"cloud away, drained by others": {func() ([]string, error) { return awaitCloud(nodeIn("IDLE+CLOUD+DRAIN+POWERED_DOWN", "bad fan"), ofH1) }, "!drained by someone else: bad fan"},
		"cloud, asked to power up": {func() ([]string, error) {
			return awaitCloud(nodeIn("IDLE+CLOUD+DRAIN+POWER_UP+POWERED_DOWN", "xce: x"), ofH1)
		}, ""},
		"cloud awaited": {func() ([]string, error) {
			return awaitCloud(nodeIn("IDLE+CLOUD+DRAIN+NOT_RESPONDING+POWERING_UP", "xce: x"), ofH1)
		}, ""},
		"cloud at an address": {func() ([]string, error) {
			return awaitCloud(nodeIn("IDLE+CLOUD+DRAIN+POWERING_UP", "xce: x"), addressed)
		}, "update nodename=h1 NodeAddr=10.0.0.7"},
		"cloud given up": {func() ([]string, error) {
			return awaitCloud(nodeIn("DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING", "ResumeTimeout reached"), ofH1)
		}, "update nodename=h1 state=resume"},
		"cloud going":        {func() ([]string, error) { return awaitCloud(nodeIn("IDLE+CLOUD+POWERING_DOWN", ""), ofH1) }, "!still switching host h1 off"},
		"cloud that is none": {func() ([]string, error) { return awaitCloud(nodeIn("IDLE", ""), ofH1) }, "!State=CLOUD"},
		"cloud absent":       {func() ([]string, error) { return awaitCloud(nil, ofH1) }, "!State=CLOUD"},
		"cloud is dynamic":   {func() ([]string, error) { return awaitCloud(nodeIn(joins, ""), ofH1) }, "!State=CLOUD"},

		"future away":          {func() ([]string, error) { return awaitFuture(future, ofH1) }, ""},
		"future at an address": {func() ([]string, error) { return awaitFuture(future, addressed) }, "update nodename=h1 NodeAddr=10.0.0.7"},
		"future absent":        {func() ([]string, error) { return awaitFuture(nil, ofH1) }, "!State=FUTURE"},

		"drain":               {func() ([]string, error) { return drain(nodeIn(joins, ""), "idle\nfor \"long\""), nil }, "update nodename=h1 state=drain reason=xce: idle for long"},
		"drain for no reason": {func() ([]string, error) { return drain(nodeIn(joins, ""), " "), nil }, "update nodename=h1 state=drain reason=xce: drained"},
		"drain one down":      {func() ([]string, error) { return drain(nodeIn("DOWN", ""), "x"), nil }, "update nodename=h1 state=drain reason=xce: x"},
		"drain again":         {func() ([]string, error) { return drain(nodeIn("IDLE+DRAIN", "xce: y"), "x"), nil }, ""},
		"drained by others":   {func() ([]string, error) { return drain(nodeIn("IDLE+DRAIN", "bad fan"), "x"), nil }, ""},
		"drain absent":        {func() ([]string, error) { return drain(nil, "x"), nil }, ""},

		"open":                 {func() ([]string, error) { return open(nodeIn("MIXED+DRAIN", "xce: y"), "h1") }, "update nodename=h1 state=undrain"},
		"open one that came":   {func() ([]string, error) { return open(nodeIn("IDLE+CLOUD+DRAIN", ""), "h1") }, "update nodename=h1 state=undrain"},
		"open one just made":   {func() ([]string, error) { return open(nodeIn(joins+"+DRAIN", ""), "h1") }, "update nodename=h1 state=undrain"},
		"open others' put off": {func() ([]string, error) { return open(nodeIn("FUTURE+DRAIN", "bad fan"), "h1") }, ""},
		"open one put off":     {func() ([]string, error) { return open(nodeIn("FUTURE", ""), "h1") }, "update nodename=h1 state=resume"},
		"open one down":        {func() ([]string, error) { return open(nodeIn("DOWN+DRAIN", "xce: y"), "h1") }, "update nodename=h1 state=resume"},
		"open what is open":    {func() ([]string, error) { return open(nodeIn("IDLE", ""), "h1") }, ""},
		"open what others do":  {func() ([]string, error) { return open(nodeIn("IDLE+DRAIN", "bad fan"), "h1") }, ""},
		"open absent":          {func() ([]string, error) { return open(nil, "h1") }, "!declare it"},

		"remove":         {func() ([]string, error) { return remove(nodeIn(joins, ""), "h1", "") }, "update nodename=h1 state=drain reason=xce: leaves"},
		"remove drained": {func() ([]string, error) { return remove(nodeIn(joins+"+DRAIN", "xce: x"), "h1", "") }, "delete nodename=h1"},
		"remove busy":    {func() ([]string, error) { return remove(nodeIn("MIXED+CLOUD+DRAIN+DYNAMIC_NORM", "xce: x"), "h1", "") }, "!jobs are on"},
		"remove while ending": {func() ([]string, error) {
			return remove(nodeIn("IDLE+COMPLETING+DRAIN+DYNAMIC_NORM", "xce: x"), "h1", "")
		}, "!jobs are on"},
		"remove one drained":   {func() ([]string, error) { return remove(nodeIn(joins+"+DRAIN", "bad fan"), "h1", "") }, "delete nodename=h1"},
		"remove what is gone":  {func() ([]string, error) { return remove(nil, "h1", "") }, ""},
		"remove a static one":  {func() ([]string, error) { return remove(nodeIn("IDLE+DRAIN", "xce: x"), "h1", "") }, "!not ours to take out"},
		"remove cloud":         {func() ([]string, error) { return remove(nodeIn("IDLE+CLOUD+DRAIN", "xce: x"), "h1", Cloud) }, ""},
		"remove cloud, busy":   {func() ([]string, error) { return remove(nodeIn("ALLOCATED+CLOUD+DRAIN", "xce: x"), "h1", Cloud) }, "!jobs are on"},
		"remove cloud, open":   {func() ([]string, error) { return remove(nodeIn("IDLE+CLOUD", ""), "h1", Cloud) }, "update nodename=h1 state=drain reason=xce: leaves"},
		"remove future":        {func() ([]string, error) { return remove(nodeIn("IDLE+DRAIN", "xce: x"), "h1", Future) }, "update nodename=h1 state=future"},
		"remove future, again": {func() ([]string, error) { return remove(future, "h1", Future) }, ""},

		"placeholder":           {func() ([]string, error) { return placeholder(nil, ofH1, andDyn) }, "create nodename=h1 CPUs=4 RealMemory=4000 Feature=dyn,x86 Gres=gpu:2 State=FUTURE"},
		"placeholder again":     {func() ([]string, error) { return placeholder(nodeIn("FUTURE+DYNAMIC_NORM", ""), ofH1, andDyn) }, ""},
		"placeholder of types":  {func() ([]string, error) { return placeholder(standsWithTypes, ofH1, typed) }, ""},
		"placeholder otherwise": {func() ([]string, error) { return placeholder(nodeIn("FUTURE+DYNAMIC_NORM", ""), ofH1, HostOptions{}) }, "delete nodename=h1"},
		"placeholder that came": {func() ([]string, error) { return placeholder(nodeIn(joins, ""), ofH1, andDyn) }, "!kept for placeholders"},
		"placeholder, static":   {func() ([]string, error) { return placeholder(future, ofH1, andDyn) }, "!kept for placeholders"},
	} {
		command, err := c.plan()
		got := strings.Join(command, " ")
		if says, fails := strings.CutPrefix(c.want, "!"); fails {
			if err == nil || !strings.Contains(err.Error(), says) || command != nil {
				t.Errorf("%s: %q, %v; want %s", name, got, err, says)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// Whatever Slurm says of a node: one that slurm.conf names is never deleted, and nothing is that has jobs or takes them.
func TestRemoveIsCareful(t *testing.T) {
	words := []string{"IDLE", "ALLOCATED", "MIXED", "DOWN", "FUTURE", "DRAIN", "COMPLETING", "NOT_RESPONDING", "POWERED_DOWN", "CLOUD", "DYNAMIC_NORM"}
	rapid.Check(t, func(t *rapid.T) {
		n := &Node{Name: "h", Base: rapid.SampledFrom(words[:5]).Draw(t, "base"), Reason: rapid.SampledFrom([]string{"", "xce: x", "y"}).Draw(t, "reason")}
		n.Flags = rapid.SliceOfDistinct(rapid.SampledFrom(words), rapid.ID[string]).Draw(t, "flags")
		n.AllocatedCPUs = rapid.Int64Range(0, 1).Draw(t, "allocated")
		command, err := remove(n, "h", rapid.SampledFrom([]HostKind{"", Cloud, Future}).Draw(t, "kind"))
		if err == nil && command != nil && command[0] == "delete" && (!n.dynamic() || n.busy() || !n.has("DRAIN")) {
			t.Fatalf("%s is deleted", n.state())
		}
		if n.busy() && err == nil && command == nil && !n.has("FUTURE") {
			t.Fatalf("%s counts as gone", n.state())
		}
	})
}

func TestOneHostAtATime(t *testing.T) {
	b := New(Options{Commands: Commands{Folder: "/nonexistent"}})
	for _, name := range []string{"", "a,b", "a[1-2]", "a b", "ALL", "all", "a=b", "-a", strings.Repeat("a", 64)} {
		if err := b.Drain(t.Context(), name, "x"); err == nil || !strings.Contains(err.Error(), "is no name of a host") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if err := b.Declare(t.Context(), backend.Machine{Name: "ok"}); err == nil || strings.Contains(err.Error(), "no name") || errors.Is(err, errBusy) {
		t.Error(err)
	}
}
