package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/slurm"
)

// Backends: what schedules the jobs.
const (
	BackendBuiltin = "builtin"
	BackendSlurm   = "slurm"
)

// What is done where someone else changed what is ours in Slurm.
const (
	RepairChanges  = "repair"
	RespectChanges = "respect"
)

// Kinds of nodes, as Slurm has them, that a made host becomes.
const (
	DynamicNodes = "dynamic" // created when the host is asked for, deleted when it has gone
	CloudNodes   = "cloud"   // written into slurm.conf with State=CLOUD
	FutureNodes  = "future"  // written into slurm.conf with State=FUTURE
)

// Slurm says how Slurm is reached, and what of it is ours. It counts where the backend is slurm.
type Slurm struct {
	// Conf is Slurm's configuration file, and Commands the folder of its programs; empty where they are on PATH.
	Conf     string `json:"conf"`
	Commands string `json:"commands"`
	// Folder is where we keep a copy of Slurm's configuration for commands.
	Folder string `json:"folder"`
	// CommandLimit is how long one command may take, MessageTimeout how long Slurm's own wait for an answer.
	CommandLimit   cluster.Duration `json:"command_limit"`
	MessageTimeout cluster.Duration `json:"message_timeout"`
	// Reservation begins the names of the reservations that keep back tokens that are not had, one for each licence.
	Reservation string `json:"reservation"`
	// Grace is for how long after slurmctld's start its counts of used tokens are not believed.
	Grace cluster.Duration `json:"grace"`
	// ForeignChanges says what is done where someone else changed what is ours: repair or respect.
	ForeignChanges string `json:"foreign_changes"`
	// Licences has lines OUR_NAME=SLURM_NAME for resources that Slurm calls otherwise; the name may have @server.
	Licences []string `json:"licences"`
	// Nodes is the kind of node that a made host becomes: dynamic, cloud or future.
	Nodes string `json:"nodes"`
	// Templates say it of single templates, and what Slurm calls what they have.
	Templates []SlurmTemplate `json:"templates"`
}

// SlurmTemplate says what hosts of one template are to Slurm.
type SlurmTemplate struct {
	Template string `json:"template"`
	// Kind is that of Slurm.Nodes where it is empty.
	Kind string `json:"kind"`
	// Nodes are those of slurm.conf that are the template's, as in c[1-16]; only for the kinds that are written there.
	Nodes    string   `json:"nodes"`
	Features []string `json:"features"`
	// Gres has lines NAME:COUNT or NAME:TYPE:COUNT, as Slurm writes them.
	Gres []string `json:"gres"`
}

// UsualSlurmConf answers where Slurm's own programs look for its configuration.
func UsualSlurmConf() string { return cmp.Or(os.Getenv("SLURM_CONF"), "/etc/slurm/slurm.conf") }

// complete fills in what depends on the rest.
func (s *Slurm) complete(base string) {
	if s.Conf == "" {
		s.Conf = UsualSlurmConf()
	}
	s.Conf = resolve(base, s.Conf)
	s.Folder = resolve(base, s.Folder)
	if s.Commands != "" {
		s.Commands = resolve(base, s.Commands)
	}
	for i := range s.Templates {
		s.Templates[i].Kind = cmp.Or(s.Templates[i].Kind, s.Nodes)
	}
}

// LicenceNames answers what Slurm calls each of the resources.
func (c *Config) LicenceNames() map[string]string {
	names := map[string]string{}
	for _, r := range c.Resources {
		names[r.Name] = r.Name
	}
	for _, line := range c.Slurm.Licences {
		if ours, theirs, named := strings.Cut(line, "="); named {
			names[ours] = theirs
		}
	}
	return names
}

const (
	leastMessageTimeout = cluster.Second
	mostMessageTimeout  = 100 * cluster.Second // Slurm's own limit
	mostCommandLimit    = 10 * cluster.Minute
	leastGrace          = cluster.Second
	mostGrace           = 10 * cluster.Minute
)

// validateSlurm checks which backend it is, and what is said of Slurm.
func (c *Config) validateSlurm() (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: key, What: what, Remedy: remedy})
	}
	s := c.Slurm
	if c.Backend != BackendBuiltin && c.Backend != BackendSlurm {
		add("backend", fmt.Sprintf("%q is no backend", c.Backend), "write builtin or slurm")
	}
	switch {
	case s.MessageTimeout < leastMessageTimeout || s.MessageTimeout > mostMessageTimeout:
		add("slurm.message_timeout", fmt.Sprintf("%s is out of range", s.MessageTimeout), fmt.Sprintf("write between %s and %s", leastMessageTimeout, mostMessageTimeout))
	case s.MessageTimeout%cluster.Second != 0:
		add("slurm.message_timeout", fmt.Sprintf("%s is a part of a second, which Slurm does not know", s.MessageTimeout), "write whole seconds")
	}
	switch {
	case s.CommandLimit > mostCommandLimit:
		add("slurm.command_limit", fmt.Sprintf("%s is too long", s.CommandLimit), fmt.Sprintf("write at most %s", mostCommandLimit))
	case s.CommandLimit <= s.MessageTimeout:
		add("slurm.command_limit", fmt.Sprintf("%s is not longer than message_timeout, so a command would be ended before Slurm says what is wrong", s.CommandLimit), fmt.Sprintf("write more than %s", s.MessageTimeout))
	}
	if s.Grace < leastGrace || s.Grace > mostGrace {
		add("slurm.grace", fmt.Sprintf("%s is out of range", s.Grace), fmt.Sprintf("write between %s and %s", leastGrace, mostGrace))
	}
	if !cluster.ValidName(s.Reservation) {
		add("slurm.reservation", fmt.Sprintf("name %q is not valid", s.Reservation), "use letters, digits, '.', '_' or '-'")
	}
	if s.ForeignChanges != RepairChanges && s.ForeignChanges != RespectChanges {
		add("slurm.foreign_changes", fmt.Sprintf("%q is neither", s.ForeignChanges), "write repair or respect")
	}
	if !kindOfNode(s.Nodes) {
		add("slurm.nodes", fmt.Sprintf("%q is no kind of node", s.Nodes), "write dynamic, cloud or future")
	}
	ps = append(ps, c.validateLicences()...)
	for i, t := range s.Templates {
		ps = append(ps, t.validate(fmt.Sprintf("slurm.templates[%d]", i), s.Templates[:i])...)
	}
	return ps
}

func kindOfNode(kind string) bool {
	return slices.Contains([]string{DynamicNodes, CloudNodes, FutureNodes}, kind)
}

// validateLicences checks the lines, and that no licence stands for two resources.
func (c *Config) validateLicences() (ps cluster.Problems) {
	known, seen := c.resourceNames(), map[string]int{}
	for i, line := range c.Slurm.Licences {
		at := fmt.Sprintf("slurm.licences[%d]", i)
		ours, theirs, named := strings.Cut(line, "=")
		first, twice := seen[ours]
		switch {
		case !named || ours == "" || theirs == "":
			ps = append(ps, cluster.Problem{Path: at, What: fmt.Sprintf("%q is not OUR_NAME=SLURM_NAME", line), Remedy: "write the resource's name, and that of the licence in Slurm, as in vcs=vcs@pool"})
			continue
		case !slices.Contains(known, ours):
			ps = append(ps, cluster.Problem{Path: at, What: fmt.Sprintf("there is no shared resource %q", ours), Remedy: "name one that is under resources"})
		case twice:
			ps = append(ps, cluster.Problem{Path: at, What: fmt.Sprintf("resource %q has a licence in licences[%d] already", ours, first), Remedy: "keep one of the two"})
		case !licenceName(theirs):
			ps = append(ps, cluster.Problem{Path: at, What: fmt.Sprintf("Slurm can have no licence %q", theirs), Remedy: "write its name as `scontrol show licenses` has it, as in vcs or vcs@pool"})
		}
		seen[ours] = i
	}
	if len(ps) > 0 {
		return ps
	}
	names, stands := c.LicenceNames(), map[string]string{}
	for i, name := range known {
		at := fmt.Sprintf("resources[%d].name", i)
		if j, mapped := seen[name]; mapped {
			at = fmt.Sprintf("slurm.licences[%d]", j)
		}
		if other, twice := stands[names[name]]; twice && other != name {
			ps = append(ps, cluster.Problem{Path: at, What: fmt.Sprintf("the licence %q stands for resource %q already", names[name], other), Remedy: "give each resource a licence of its own in slurm.licences"})
		}
		stands[names[name]] = name
	}
	return ps
}

// licenceName tells whether Slurm can have a licence of that name, which may have a server.
func licenceName(name string) bool {
	name, server, remote := strings.Cut(name, "@")
	return name != "" && (!remote || server != "") && !strings.ContainsFunc(name+server, notInLicence)
}

// notInLicence tells whether a sign ends a licence's name in Slurm's lists.
func notInLicence(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`,;:|=@()"'\`, r) }

func (t SlurmTemplate) validate(at string, before []SlurmTemplate) (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	if !cluster.ValidName(t.Template) {
		add("template", fmt.Sprintf("name %q is not valid", t.Template), "name a template, as its provider does")
	}
	if i := slices.IndexFunc(before, func(o SlurmTemplate) bool { return o.Template == t.Template }); i >= 0 {
		add("template", fmt.Sprintf("template %q is already in templates[%d]", t.Template, i), "give each template one entry")
	}
	if !kindOfNode(t.Kind) {
		add("kind", fmt.Sprintf("%q is no kind of node", t.Kind), "write dynamic, cloud or future")
	}
	ps = append(ps, t.validateNodes(at+".nodes", before)...)
	for i, f := range t.Features {
		if f == "" || strings.ContainsFunc(f, notInFeature) {
			add(fmt.Sprintf("features[%d]", i), fmt.Sprintf("Slurm can have no feature %q", f), "use letters, digits, '.', '_', '-', '/' or '='")
		}
	}
	for i, g := range t.Gres {
		if !gres(g) {
			add(fmt.Sprintf("gres[%d]", i), fmt.Sprintf("%q is not NAME:COUNT or NAME:TYPE:COUNT", g), "write it as slurm.conf has it, as in gpu:2 or gpu:a100:2")
		}
	}
	return ps
}

// validateNodes checks which nodes of slurm.conf are the template's.
func (t SlurmTemplate) validateNodes(at string, before []SlurmTemplate) cluster.Problems {
	fault := func(what, remedy string) cluster.Problems {
		return cluster.Problems{{Path: at, What: what, Remedy: remedy}}
	}
	nodes, err := slurm.ExpandHosts(t.Nodes)
	switch {
	case t.Kind == DynamicNodes && t.Nodes != "":
		return fault("dynamic nodes are in no file", "remove it, or write kind: cloud or future")
	case t.Kind == DynamicNodes || !kindOfNode(t.Kind):
		return nil
	case t.Nodes == "":
		return fault(fmt.Sprintf("it is not said which nodes of slurm.conf are those of template %s", t.Template), "write them as slurm.conf does, as in c[1-16]")
	case err != nil:
		return fault(err.Error(), "write nodes as slurm.conf does, as in c[1-16]")
	}
	for i, o := range before {
		others, err := slurm.ExpandHosts(o.Nodes)
		if j := slices.IndexFunc(nodes, func(n string) bool { return slices.Contains(others, n) }); err == nil && j >= 0 {
			return fault(fmt.Sprintf("node %s is one of templates[%d] already", nodes[j], i), "give each node to one template")
		}
	}
	return nil
}

// notInFeature tells whether a sign cannot be in a feature that jobs ask for.
func notInFeature(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`,;:|&()[]{}*!"'\`, r)
}

// gres tells whether a text is a name, perhaps a type, and a count.
func gres(text string) bool {
	parts := strings.Split(text, ":")
	count, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
	if len(parts) < 2 || len(parts) > 3 || err != nil || count < 1 {
		return false
	}
	return !slices.ContainsFunc(parts, func(p string) bool { return p == "" || strings.ContainsFunc(p, notInLicence) })
}

// SlurmOptions answers what the Slurm backend needs; its commands read the configuration of Slurm in conf.
func (c *Config) SlurmOptions(conf string) slurm.Options {
	o := slurm.Options{
		Commands: slurm.Commands{Conf: conf, Folder: c.Slurm.Commands, Limit: c.Slurm.CommandLimit.Std()},
		Licences: c.LicenceNames(), Reservation: c.Slurm.Reservation, Grace: c.Slurm.Grace,
		Respect: c.Slurm.ForeignChanges == RespectChanges, Hosts: map[string]slurm.HostOptions{},
	}
	for _, t := range c.Slurm.Templates {
		h := slurm.HostOptions{Kind: slurm.HostKind(t.Kind), Nodes: t.Nodes, Features: t.Features, Gres: map[string]int64{}}
		for _, line := range t.Gres {
			i := strings.LastIndex(line, ":")
			h.Gres[line[:i]], _ = strconv.ParseInt(line[i+1:], 10, 64) // validated
		}
		o.Hosts[t.Template] = h
	}
	return o
}
