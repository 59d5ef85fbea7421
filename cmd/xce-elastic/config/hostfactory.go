package config

import (
	"fmt"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers/hostfactory"
)

// HostFactory is a plug-in of the LSF resource connector or of Symphony in place
// of a provider script.
type HostFactory struct {
	// Scripts is the folder of the five scripts; Conf, Work, Logs and Top are
	// folders that the plug-in is told of.
	Scripts string `json:"scripts"`
	Flavour string `json:"flavour"`
	Conf    string `json:"conf"`
	Work    string `json:"work"`
	Logs    string `json:"logs"`
	Top     string `json:"top"`
	// State is the file of the adapter's own records.
	State        string           `json:"state"`
	Account      string           `json:"account"`
	PollInterval cluster.Duration `json:"poll_interval"`
	Settle       cluster.Duration `json:"settle"`
	Watch        cluster.Duration `json:"watch"`
	Hold         cluster.Duration `json:"hold"`
	// Defaults are for templates that are not named, and for what named ones
	// leave out.
	Defaults  Terms   `json:"defaults"`
	Templates []Terms `json:"templates"`
}

// Terms are the economics of a template, and its size where the plug-in does not
// say it.
type Terms struct {
	Template     string           `json:"template"` // the plug-in's templateId
	Name         string           `json:"name"`
	Price        int64            `json:"price"`
	MinimumHold  cluster.Duration `json:"minimum_hold"`
	BillingStep  cluster.Duration `json:"billing_step"`
	Latency      cluster.Duration `json:"latency"`
	Preference   int64            `json:"preference"`
	Max          int64            `json:"max"`
	CPUs         int64            `json:"cpus"`
	MemoryMB     int64            `json:"memory_mb"`
	KeepCPUs     int64            `json:"keep_cpus"`
	KeepMemoryMB int64            `json:"keep_memory_mb"`
}

const defaultPluginTimeLimit = 2 * cluster.Minute

func (h *HostFactory) complete(base, provider string) {
	if h.State == "" {
		h.State = provider + ".hostfactory.json"
	}
	if h.Flavour == "" {
		h.Flavour = string(hostfactory.LSF)
	}
	for _, path := range []*string{&h.Scripts, &h.Conf, &h.Work, &h.Logs, &h.Top, &h.State} {
		if *path != "" {
			*path = resolve(base, *path)
		}
	}
	lengths := map[*cluster.Duration]cluster.Duration{
		&h.PollInterval: 30 * cluster.Second, &h.Settle: 5 * cluster.Minute, &h.Watch: 2 * cluster.Hour, &h.Hold: 10 * cluster.Minute,
	}
	for length, otherwise := range lengths {
		if *length == 0 {
			*length = otherwise
		}
	}
}

func (h *HostFactory) validate(at string) (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	if h.Scripts == "" {
		add("scripts", "there is no folder of scripts", "name the folder with requestMachines.sh and the others")
	}
	if h.Work == "" {
		add("work", "there is no work folder", "name the folder where the plug-in keeps its records")
	}
	if !slices.Contains(hostfactory.Flavours, hostfactory.Flavour(h.Flavour)) {
		add("flavour", fmt.Sprintf("%q is no flavour", h.Flavour), "write lsf or symphony")
	}
	for _, length := range []struct {
		key string
		is  cluster.Duration
	}{{"poll_interval", h.PollInterval}, {"settle", h.Settle}, {"watch", h.Watch}, {"hold", h.Hold}} {
		if length.is < cluster.Second {
			add(length.key, fmt.Sprintf("%s is too short", length.is), "write at least 1s")
		}
	}
	ps = append(ps, h.Defaults.validate(at+".defaults")...)
	for i, t := range h.Templates {
		place := fmt.Sprintf("templates[%d]", i)
		ps = append(ps, t.validate(at+"."+place)...)
		switch name := t.named(); {
		case t.Template == "":
			add(place+".template", "there is no template", "write the plug-in's templateId")
		case !cluster.ValidName(name):
			add(place+".name", fmt.Sprintf("name %q is not valid", name), "give the template a name of letters, digits, '.', '_' or '-'")
		}
		if j := slices.IndexFunc(h.Templates[:i], func(o Terms) bool { return o.Template == t.Template || o.named() == t.named() }); j >= 0 {
			add(place, fmt.Sprintf("the template, or its name, is in templates[%d] already", j), "give each template one entry and a name of its own")
		}
	}
	return ps
}

func (t Terms) named() string {
	if t.Name == "" {
		return t.Template
	}
	return t.Name
}

func (t Terms) validate(at string) (ps cluster.Problems) {
	for _, n := range []struct {
		key string
		is  int64
	}{
		{"price", t.Price},
		{"minimum_hold", int64(t.MinimumHold)},
		{"billing_step", int64(t.BillingStep)},
		{"latency", int64(t.Latency)},
		{"preference", t.Preference},
		{"max", t.Max},
		{"cpus", t.CPUs},
		{"memory_mb", t.MemoryMB},
		{"keep_cpus", t.KeepCPUs},
		{"keep_memory_mb", t.KeepMemoryMB},
	} {
		if n.is < 0 || n.is > 1_000_000_000_000 {
			ps = append(ps, cluster.Problem{Path: at + "." + n.key, What: "it is out of range", Remedy: "write 0 or a positive value, as large as there can be"})
		}
	}
	return ps
}

// spec answers what the adapter needs.
func (h *HostFactory) spec(p Provider) hostfactory.Spec {
	script := p.Spec()
	spec := hostfactory.Spec{
		Name: p.Name, Flavour: hostfactory.Flavour(h.Flavour), Scripts: h.Scripts, Conf: h.Conf, Work: h.Work, Logs: h.Logs,
		Top: h.Top, State: h.State, Environment: script.Environment, User: script.User, Secrets: script.Secrets, Account: h.Account, Terms: h.Defaults.terms(),
		TimeLimit: script.TimeLimit, OutputLimit: script.OutputLimit, PollInterval: h.PollInterval.Std(),
		Settle: h.Settle.Std(), Watch: h.Watch.Std(), Hold: h.Hold.Std(),
	}
	for _, t := range h.Templates {
		spec.Templates = append(spec.Templates, t.terms())
	}
	return spec
}

func (t Terms) terms() hostfactory.Terms {
	return hostfactory.Terms{
		ID: t.Template, Name: t.Name, Price: t.Price, MinimumHold: t.MinimumHold.Std(), BillingStep: t.BillingStep.Std(),
		Latency: t.Latency.Std(), Preference: t.Preference, Most: t.Max, CPUs: t.CPUs, MemoryMB: t.MemoryMB,
		KeepCPUs: t.KeepCPUs, KeepMemoryMB: t.KeepMemoryMB,
	}
}
