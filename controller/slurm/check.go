package slurm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Wanted is what we ask of Slurm, as our configuration says.
type Wanted struct {
	// Reservation begins the names of the reservations that keep tokens back; empty where nothing is known of us.
	Reservation string
	Resources   []WantedResource
	// Kinds are the kinds of nodes that made hosts become; empty where no provider makes hosts.
	Kinds []HostKind
	// MostHosts is how many hosts may be made; 0 is no limit.
	MostHosts int64
}

// WantedResource is a shared resource, and what Slurm calls its tokens.
type WantedResource struct {
	Name, Licence      string
	Owned, MaxBorrowed int64
}

// ceiling is the most that can be had at once.
func (r WantedResource) ceiling() int64 { return r.Owned + r.MaxBorrowed }

// Verdict is what a finding comes to.
type Verdict string

// Verdicts.
const (
	Good    Verdict = "ok"
	Advice  Verdict = "advice"  // goes without, less well
	Later   Verdict = "later"   // what a newer release of Slurm would have
	Missing Verdict = "MISSING" // does not go without
)

// Finding is one thing that was looked at.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject"`
	Text    string  `json:"text"`
}

// Line is a line for slurm.conf, or a command, and why it is needed.
type Line struct {
	Why     string `json:"why"`
	Line    string `json:"line"`
	Command bool   `json:"command"`
	// Restart tells that slurmctld must be started anew for it; else `scontrol reconfigure` will do.
	Restart bool `json:"restart"`
}

// Report is what a check found.
type Report struct {
	Findings []Finding `json:"findings"`
	Lines    []Line    `json:"lines"`
}

// Missing answers how many things are missing.
func (r Report) Missing() (n int) {
	for _, f := range r.Findings {
		if f.Verdict == Missing {
			n++
		}
	}
	return n
}

// checker collects what is found.
type checker struct {
	Survey
	want    Wanted
	release Release
	report  Report
}

// Check compares what Slurm has with what we want of it.
func Check(s Survey, want Wanted) Report {
	c := &checker{Survey: s, want: want}
	c.version()
	c.programs()
	c.rights()
	c.privacy()
	c.scheduler()
	c.accounting()
	c.hosts()
	c.licences()
	c.reservations()
	return c.report
}

func (c *checker) find(v Verdict, subject, format string, args ...any) {
	c.report.Findings = append(c.report.Findings, Finding{v, subject, fmt.Sprintf(format, args...)})
}

func (c *checker) add(l Line) { c.report.Lines = append(c.report.Lines, l) }

// wants tells whether made hosts become nodes of one of the kinds.
func (c *checker) wants(kinds ...HostKind) bool {
	return slices.ContainsFunc(c.want.Kinds, func(k HostKind) bool { return slices.Contains(kinds, k) })
}

func (c *checker) version() {
	release, err := ReleaseOf(c.Settings.Version)
	switch c.release = release; {
	case err != nil:
		c.find(Advice, "release", "%v: what it can is not known", err)
		return
	case release.Before(oldest):
		c.find(Advice, "release", "%s is older than %s, the oldest whose output is known", c.Settings.Version, oldest)
	case newest.Before(release):
		c.find(Advice, "release", "%s is newer than %s, the newest whose output is known", c.Settings.Version, newest)
	default:
		c.find(Good, "release", "%s", c.Settings.Version)
	}
	for _, can := range Capabilities {
		if release.Before(can.Since) {
			c.find(Later, can.Since.String(), "%s: %s", can.What, can.Use)
		}
	}
}

func (c *checker) programs() {
	var there []string
	for _, name := range neededPrograms {
		if c.Programs[name] == "" {
			c.find(Missing, "commands", "there is no %s; install Slurm's client commands, or set slurm.commands to their folder", name)
		} else {
			there = append(there, c.Programs[name])
		}
	}
	for _, name := range usefulPrograms {
		switch {
		case c.Programs[name] != "":
			there = append(there, c.Programs[name])
		case c.Settings.accounting() == slurmdbd:
			c.find(Advice, "commands", "there is no %s: it tells our rights, and records traces of past jobs", name)
		}
	}
	c.find(Good, "commands", "%s", strings.Join(there, " "))
}

// rights: a reservation needs an operator, a change of nodes an administrator.
func (c *checker) rights() {
	who := fmt.Sprintf("%s (AdminLevel %s)", c.Me.Name, orNone(c.Me.Level))
	full := c.Me.UID == "0" || c.isSlurmUser() || c.Me.Level == "Administrator"
	if full {
		c.find(Good, "rights", "%s may change reservations and nodes", c.Me.Name)
		return
	}
	level := "Operator"
	if len(c.want.Kinds) > 0 {
		level = "Administrator"
	}
	switch {
	case c.Me.Level == level:
		c.find(Good, "rights", "%s may change reservations; nodes only an Administrator may", who)
		return
	case c.Settings.accounting() == slurmdbd:
		c.find(Missing, "rights", "%s may not change what we must; run the controller as SlurmUser (%s), or raise its level", who, c.Settings.value("slurmuser"))
		c.add(Line{Why: "the user as whom the controller runs must be allowed to change reservations" + and(level == "Administrator", " and nodes"), Line: fmt.Sprintf("sacctmgr -i modify user where name=%s set adminlevel=%s", c.Me.Name, level), Command: true})
	default:
		c.find(Missing, "rights", "%s is neither root nor SlurmUser, and without slurmdbd nobody else has rights; run the controller as %s", c.Me.Name, c.Settings.value("slurmuser"))
	}
}

// isSlurmUser tells whether we are the user that slurmctld runs as, which it tells as in slurm(64030).
func (c *checker) isSlurmUser() bool {
	_, rest, _ := strings.Cut(c.Settings.value("slurmuser"), "(")
	return strings.TrimSuffix(rest, ")") == c.Me.UID
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// and answers a text where something is so.
func and(so bool, text string) string {
	if so {
		return text
	}
	return ""
}

// privacy: what is hidden from us raises no demand.
func (c *checker) privacy() {
	private := c.Settings.words("privatedata")
	for _, hidden := range []string{"jobs", "nodes", "partitions", "reservations"} {
		if slices.Contains(private, hidden) && c.Me.UID != "0" && !c.isSlurmUser() && c.Me.Level == "" {
			c.find(Missing, "PrivateData", "%s of others are hidden from %s; give it AdminLevel Operator, or run the controller as SlurmUser", hidden, c.Me.Name)
		}
	}
	if c.wants(Cloud) && !slices.Contains(private, "cloud") {
		c.find(Missing, "PrivateData", "cloud is not in it, so nodes with State=CLOUD are hidden while they are away")
		c.add(Line{Why: "shows the nodes that are away", Line: "PrivateData=" + strings.Join(append(slices.Clone(private), "cloud"), ",")})
	}
}

func (c *checker) scheduler() {
	parameters := c.Settings.words("schedulerparameters")
	switch kind := c.Settings.value("schedulertype"); {
	case kind != "sched/backfill":
		c.find(Good, "scheduler", "%s", kind)
	case slices.Contains(parameters, "bf_licenses"):
		c.find(Good, "scheduler", "sched/backfill with bf_licenses")
	default:
		c.find(Advice, "scheduler", "sched/backfill without bf_licenses: no hosts are kept for a job that waits for tokens, and smaller jobs may pass it for ever")
		c.add(Line{Why: "backfill plans with licences, so that jobs that need many are not passed for ever", Line: "SchedulerParameters=" + strings.Join(append(slices.Clone(parameters), "bf_licenses"), ",")})
	}
}

func (c *checker) accounting() {
	if c.Settings.accounting() != slurmdbd {
		c.find(Advice, "accounting", "there is no slurmdbd: no traces of past jobs, and no licences with @server; nothing else needs it")
		return
	}
	tracked := c.Settings.words("accountingstoragetres")
	var absent []string
	for _, name := range c.licenceNames() {
		tres := "license/" + name
		if !slices.Contains(tracked, tres) && !slices.ContainsFunc(tracked, func(t string) bool { return strings.EqualFold(t, tres) }) {
			absent = append(absent, tres)
		}
	}
	if len(absent) == 0 {
		c.find(Good, "accounting", "slurmdbd, which accounts for licences too")
		return
	}
	c.find(Advice, "accounting", "slurmdbd, which does not account for %s: traces of past jobs do not tell who had them", strings.Join(absent, ", "))
	c.add(Line{Why: "slurmdbd accounts for licences, so that traces have them from then on", Line: "AccountingStorageTRES=" + strings.Join(append(further(tracked), absent...), ","), Restart: true})
}

// alwaysTracked are what Slurm accounts for without being told to.
var alwaysTracked = []string{"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"}

func further(tracked []string) []string {
	return slices.DeleteFunc(slices.Clone(tracked), func(t string) bool { return slices.Contains(alwaysTracked, t) })
}

// licenceNames are those that are wanted; where nothing is, all that there are.
func (c *checker) licenceNames() []string {
	if len(c.want.Resources) == 0 {
		return slices.Sorted(maps.Keys(c.Licences))
	}
	var names []string
	for _, r := range c.want.Resources {
		names = append(names, r.Licence)
	}
	slices.Sort(names)
	return names
}

// hosts: what must be so for made hosts to become nodes.
func (c *checker) hosts() {
	if len(c.want.Kinds) == 0 {
		c.find(Good, "hosts", "%d nodes%s", len(c.Nodes), and(c.want.Reservation != "", "; no provider makes more"))
		return
	}
	c.find(Good, "hosts", "%d nodes; made ones become %s", len(c.Nodes), kindsText(c.want.Kinds))
	if c.wants(Dynamic) {
		c.dynamic()
	}
	c.power()
}

func kindsText(kinds []HostKind) string {
	var texts []string
	for _, k := range kinds {
		texts = append(texts, string(k)+" nodes")
	}
	return strings.Join(texts, " and ")
}

// roomUnlimited is the room that is suggested where nothing limits how many hosts are made.
const roomUnlimited = 512

func (c *checker) dynamic() {
	if c.release != (Release{}) && c.release.Before(hasDynamicNodes) {
		c.find(Missing, "dynamic nodes", "this release cannot make nodes at run time; write slurm.nodes: cloud, and such nodes into slurm.conf")
		return
	}
	if kind := c.Settings.value("selecttype"); kind != "select/cons_tres" {
		c.find(Missing, "SelectType", "%s cannot make nodes at run time", kind)
		c.add(Line{Why: "nodes are made at run time only with it (all slurmd start anew too)", Line: "SelectType=select/cons_tres", Restart: true})
	}
	most, _ := strconv.ParseInt(c.Settings.value("maxnodecount"), 10, 64)
	room, need := max(most-int64(len(c.Nodes)), 0), c.want.MostHosts
	switch {
	case room == 0 || room < need:
		c.find(Missing, "MaxNodeCount", "%d leaves room for %d nodes more than there are%s; placeholders count too", most, room, and(need > 0, fmt.Sprintf(", and hosts.max is %d", need)))
		if need == 0 {
			need = roomUnlimited
		}
		c.add(Line{Why: "room for the hosts that providers make, and for a placeholder of each template", Line: fmt.Sprintf("MaxNodeCount=%d", int64(len(c.Nodes))+need+64), Restart: true})
	default:
		c.find(Good, "MaxNodeCount", "%d leaves room for %d nodes more, placeholders among them", most, room)
	}
	c.nodeSets()
}

// nodeSets: a node that no file names is in a partition only by a feature, or where the partition has all.
func (c *checker) nodeSets() {
	var take []string
	for _, p := range c.Partitions {
		if len(p.NodeSets) > 0 || len(p.Nodes) == len(c.Nodes) {
			take = append(take, p.Name)
		}
	}
	if len(take) > 0 {
		c.find(Good, "partitions", "%s can take made nodes, by node sets or since they have all", strings.Join(take, ", "))
		return
	}
	c.find(Missing, "partitions", "none has a node set, so no made node would be in any")
	c.add(Line{Why: "made nodes have the feature xce, by which partitions take them; add the set to Nodes= of each that is to have them, as in PartitionName=main Nodes=n[1-9],xce", Line: "NodeSet=xce Feature=xce", Restart: true})
}

// power: slurmctld's own power saving must leave our nodes alone, and is needed for those with State=CLOUD.
func (c *checker) power() {
	idle := c.Settings.value("suspendtime")
	on := c.Settings.value("suspendprogram") != "" && !strings.HasPrefix(idle, "INFINITE") && !strings.HasPrefix(idle, "-1") && idle != ""
	if c.wants(Cloud) && !on {
		c.find(Missing, "power saving", "SuspendTime is %s: with that Slurm never sees nodes with State=CLOUD come and go", orNone(idle))
		c.add(Line{Why: "turns the power module on, which nodes with State=CLOUD need, without powering anything down by itself", Line: "SuspendTime=31536000"})
	}
	if !on || !c.wants(Dynamic) {
		return
	}
	if slices.Contains(c.Settings.words("suspendexcstates"), "DYNAMIC_NORM") {
		c.find(Good, "power saving", "leaves dynamic nodes alone")
		return
	}
	c.find(Advice, "power saving", "slurmctld powers down nodes that idle for %s, made ones too where nothing excepts them", idle)
	if !c.release.Before(hasSuspendExcStates) {
		c.add(Line{Why: "slurmctld powers down no node that we made", Line: "SuspendExcStates=" + strings.Join(append(c.Settings.words("suspendexcstates"), "DYNAMIC_NORM"), ",")})
	}
}

func (c *checker) licences() {
	if len(c.want.Resources) == 0 {
		for _, name := range slices.Sorted(maps.Keys(c.Licences)) {
			l := c.Licences[name]
			c.find(Good, "licence "+name, "total %d, used %d, kept back %d", l.Total, l.Used, l.Reserved)
		}
		return
	}
	local := localLicences(c.Licences)
	var changed bool
	var raised []WantedResource
	for _, r := range c.want.Resources {
		if c.licence(r) {
			continue
		}
		if r.MaxBorrowed > 0 && c.Licences[r.Licence].Total < r.ceiling() {
			raised = append(raised, r)
		}
		if name, server, remote := strings.Cut(r.Licence, "@"); remote {
			c.remote(r, name, server)
		} else {
			local[r.Licence], changed = r.ceiling(), true
		}
	}
	if changed {
		c.add(Line{Why: "totals are what is owned and the most that may be borrowed", Line: "Licenses=" + countList(local)})
	}
	for _, r := range raised {
		c.keepBack(r)
	}
}

// keepBack says how a total is raised without a moment in which jobs that wait take what is not had.
func (c *checker) keepBack(r WantedResource) {
	name := reservationName(c.want.Reservation, r.Licence)
	command := fmt.Sprintf("scontrol create reservation reservationname=%s starttime=now endtime=now+%s users=root flags=LICENSE_ONLY licenses=%s:%d", name, lasts, r.Licence, r.MaxBorrowed)
	if slices.ContainsFunc(c.Reservations, func(o Reservation) bool { return o.Name == name }) {
		command = fmt.Sprintf("scontrol update reservationname=%s licenses=%s:%d", name, r.Licence, r.MaxBorrowed)
	}
	if !strings.Contains(r.Licence, "@") {
		command = "scontrol reconfigure && " + command
	}
	c.add(Line{Why: "keeps back at once what " + r.Name + " has not borrowed, or jobs that wait would take it before the controller keeps it back; with several, in one line", Line: command, Command: true})
}

func localLicences(all map[string]Licence) map[string]int64 {
	local := map[string]int64{}
	for name, l := range all {
		if !l.Remote {
			local[name] = l.Total
		}
	}
	return local
}

// licence tells whether the licence of a resource is as it should be.
func (c *checker) licence(r WantedResource) bool {
	subject := "resource " + r.Name
	sum := fmt.Sprintf("%d (owned %d%s)", r.ceiling(), r.Owned, and(r.MaxBorrowed > 0, fmt.Sprintf(", and at most %d borrowed", r.MaxBorrowed)))
	l, there := c.Licences[r.Licence]
	switch {
	case !there:
		c.find(Missing, subject, "Slurm has no licence %s; jobs that ask for it are refused as they are submitted", r.Licence)
		return false
	case l.Total < r.ceiling():
		c.find(Missing, subject, "the total of licence %s is %d, not %s; jobs that ask for more than %d are refused as they are submitted, and raise no demand", r.Licence, l.Total, sum, l.Total)
		return false
	case l.Total > r.ceiling():
		c.find(Advice, subject, "the total of licence %s is %d, not %s; jobs that ask for more than that are taken, and wait for ever", r.Licence, l.Total, sum)
		return false
	}
	c.find(Good, subject, "the total of licence %s is %s", r.Licence, sum)
	return true
}

func (c *checker) remote(r WantedResource, name, server string) {
	line := fmt.Sprintf("sacctmgr -i modify resource where name=%s server=%s set count=%d", name, server, r.ceiling())
	if _, there := c.Licences[r.Licence]; !there {
		allowed := "percentallowed"
		if !c.release.Before(hasAllowed) {
			allowed = "allowed"
		}
		line = fmt.Sprintf("sacctmgr -i add resource name=%s server=%s type=license count=%d cluster=%s %s=100", name, server, r.ceiling(), c.Settings.Cluster, allowed)
	}
	c.add(Line{Why: "the total of " + r.Name + " is what is owned and the most that may be borrowed; read it back with `scontrol show licenses`, where only the percentage counts that the cluster is allowed", Line: line, Command: true})
}

// reservations: those of others count as theirs.
func (c *checker) reservations() {
	ours := map[string]string{}
	for _, r := range c.want.Resources {
		ours[reservationName(c.want.Reservation, r.Licence)] = r.Licence
	}
	for _, r := range c.Reservations {
		licence, mine := ours[r.Name]
		switch {
		case mine && len(r.Nodes) > 0:
			c.find(Missing, "reservation", "%s keeps nodes, so it is not ours; set slurm.reservation to another name", r.Name)
		case mine:
			c.find(Good, "reservation", "%s keeps back %d of %s", r.Name, r.Licences[licence], licence)
		case slices.ContainsFunc(c.licenceNames(), func(name string) bool { return r.Licences[name] > 0 }):
			c.find(Advice, "reservation", "%s of others keeps %s back; it is left alone, and its jobs have what is left of what is had", r.Name, countList(r.Licences))
		}
	}
}
