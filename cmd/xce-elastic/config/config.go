// Package config reads the configuration of all parts: one YAML file, XCE_
// environment variables over it, flags over both. What is misspelt, malformed or
// contradictory is refused whole, each fault with its file, line, key and remedy.
package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/limit"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/record"
	"xce.internal/elastic/controller/slurm"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/hostfactory"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/worker"
	"xce.internal/elastic/workflows"
)

// Config is the whole configuration. Paths are relative to the file's folder.
type Config struct {
	Cluster    Cluster                  `json:"cluster"`
	Resources  []cluster.SharedResource `json:"resources"`
	Hosts      cluster.HostRules        `json:"hosts"`
	Policy     scheduling.Policy        `json:"policy"`
	Thresholds []scheduling.Threshold   `json:"thresholds"`
	Providers  []Provider               `json:"providers"`
	Controller Controller               `json:"controller"`
	// Backend is what schedules the jobs: builtin or slurm.
	Backend string `json:"backend"`
	Slurm   Slurm  `json:"slurm"`
	Peer    TLS    `json:"peer"`
	// Leases say for how long a provisioner acts for a provider without being heard of.
	Leases      cluster.LeaseRules `json:"leases"`
	Provisioner Provisioner        `json:"provisioner"`
	Temporal    Temporal           `json:"temporal"`
	Agent       Agent              `json:"agent"`
	Log         Log                `json:"log"`
	// Simulation stands in for the world where the cluster is simulated.
	Simulation simulation.Settings `json:"simulation"`

	file string
}

// Cluster names the cluster and sets the pace of its sessions.
type Cluster struct {
	Name            string           `json:"name"`
	SessionInterval cluster.Duration `json:"session_interval"`
}

// Provider is a provider script, or a plug-in in its place, and how to run it.
type Provider struct {
	Name        string       `json:"name"`
	Script      string       `json:"script"`
	HostFactory *HostFactory `json:"hostfactory,omitempty"`
	// Environment has lines NAME=VALUE.
	Environment []string `json:"environment"`
	// User is the system user as whom the script runs; empty is who we are.
	User string `json:"user"`
	// Secrets has lines NAME=FILE: the script finds the secret in the file that the variable NAME_FILE names.
	Secrets     []string         `json:"secrets"`
	TimeLimit   cluster.Duration `json:"time_limit"`
	OutputLimit int64            `json:"output_limit"`
	SurveyEvery cluster.Duration `json:"survey_every"`
	// OrphanGrace is how long a machine is left alone that no open host stands for.
	OrphanGrace cluster.Duration `json:"orphan_grace"`
}

// Controller says where the controller serves and keeps its state, and with
// which certificate; Address is where others reach it, or several with commas
// between them.
type Controller struct {
	Listen  string    `json:"listen"`
	Address string    `json:"address"`
	State   string    `json:"state"`
	TLS     ServerTLS `json:"tls"`
	// Name is this controller's among those that share the state; empty stands for
	// the machine's name. SessionLease is for how long one that gives no sign keeps
	// the right to run sessions.
	Name         string           `json:"name"`
	SessionLease cluster.Duration `json:"session_lease"`
	// CAKey is the key of the authority in TLS.CA, with which elastic hosts get
	// their certificates; empty where there are none.
	CAKey string `json:"ca_key"`
	// Record is the folder in which the controller takes down what it decides, and on what; empty where it does not.
	// RecordLimitMB is how large all files in it may become together.
	Record        string `json:"record"`
	RecordLimitMB int64  `json:"record_limit_mb"`
	// Limits are what one peer may take of the controller.
	Limits limit.Limits `json:"limits"`
}

// TLS names the PEM files of one side of a connection.
type TLS struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
}

// Files answers the files for the connection.
func (t TLS) Files() pki.Files { return pki.Files(t) }

// ServerTLS names the PEM files of the controller's side of a connection.
type ServerTLS struct {
	CA   string `json:"ca"`
	Cert string `json:"cert"`
	Key  string `json:"key"`
	// CRL is the authority's list of revoked certificates; empty where none are refused.
	CRL string `json:"crl"`
}

// Files answers the files for the connection.
func (t ServerTLS) Files() pki.Files { return pki.Files{CA: t.CA, Cert: t.Cert, Key: t.Key} }

// Agent is this machine as a host.
type Agent struct {
	Host     string `json:"host"`
	CPUs     int64  `json:"cpus"`
	MemoryMB int64  `json:"memory_mb"`
	// Countables has lines NAME=COUNT; Features has features, and attributes as
	// NAME=VALUE.
	Countables []string `json:"countables"`
	Features   []string `json:"features"`
	Folder     string   `json:"folder"`
}

// Log says what is logged, and how.
type Log struct {
	Level  string `json:"level"`
	Format string `json:"format"`
}

var (
	rules  = cluster.DefaultHostRules()
	leases = cluster.DefaultLeaseRules()
	few    = limit.Defaults()
)

// defaults are the values of keys that are set nowhere; every key that an
// environment variable can set must be here.
var defaults = map[string]any{
	"cluster.name": "", "cluster.session_interval": "5s",
	"controller.listen": "127.0.0.1:7400", "controller.address": "https://127.0.0.1:7400", "controller.state": "controller.db",
	"controller.name": "", "controller.session_lease": "5s",
	"controller.ca_key": "", "controller.record": "", "controller.record_limit_mb": record.DefaultMost >> 20, "controller.tls.ca": "pki/ca.crt", "controller.tls.cert": "pki/controller.crt", "controller.tls.key": "pki/controller.key", "controller.tls.crl": "",
	"controller.limits.rate": few.Rate, "controller.limits.burst": few.Burst, "controller.limits.stranger_rate": few.StrangerRate, "controller.limits.stranger_burst": few.StrangerBurst,
	"controller.limits.calls": few.Calls, "controller.limits.polls": few.Polls, "controller.limits.connections": few.Connections, "controller.limits.address_connections": few.AddressConnections,
	"controller.limits.catalog_mb": few.CatalogMB, "controller.limits.time": few.Time.String(),
	"peer.ca": "pki/ca.crt", "peer.cert": "pki/admin.crt", "peer.key": "pki/admin.key",
	"temporal.address": "", "temporal.namespace": "", "temporal.api_key_file": "", "temporal.codec.keys": "", "temporal.versioning": false,
	"temporal.tls.ca": "", "temporal.tls.cert": "", "temporal.tls.key": "", "temporal.tls.server_name": "",
	"leases.time_to_live": leases.TimeToLive.String(), "leases.settle": leases.Settle.String(), "provisioner.health": "",
	"policy.order": "fcfs", "policy.depth": 0,
	"hosts.max": rules.Max, "hosts.idle_time": rules.IdleTime.String(), "hosts.join_within": rules.JoinWithin.String(),
	"hosts.max_lifetime": rules.MaxLifetime.String(), "hosts.suspect_after": rules.SuspectAfter.String(), "hosts.lost_after": rules.LostAfter.String(),
	"hosts.halt.hosts": rules.Halt.Hosts, "hosts.halt.percent": rules.Halt.Percent,
	"simulation.steps.controller": "20ms", "simulation.steps.news": "50ms", "simulation.steps.stop": "1s",
	"agent.host": "", "agent.cpus": 0, "agent.memory_mb": 0, "agent.folder": "agent",
	"log.level": "info", "log.format": "text",
	"backend": BackendBuiltin, "slurm.conf": "", "slurm.commands": "", "slurm.folder": "slurm", "slurm.command_limit": "5s", "slurm.message_timeout": "2s",
	"slurm.reservation": slurm.DefaultReservation, "slurm.grace": slurm.DefaultGrace.String(), "slurm.foreign_changes": RepairChanges, "slurm.nodes": DynamicNodes,
}

const (
	defaultTimeLimit   = 30 * cluster.Second
	defaultSurveyEvery = cluster.Minute
	defaultOutputLimit = 1 << 20
	defaultOrphanGrace = 10 * cluster.Minute
	leastRecordMB      = 16
)

// complete fills in what depends on the rest.
func (c *Config) complete() {
	base := filepath.Dir(c.file)
	if len(c.Provisioner.Pools) == 0 {
		c.Provisioner.Pools = worker.AllPools
	}
	for i := range c.Resources {
		if r := &c.Resources[i]; r.UnitWeight == 0 {
			r.UnitWeight = r.Weight()
		}
	}
	for i := range c.Providers {
		p := &c.Providers[i]
		if p.HostFactory != nil {
			p.HostFactory.complete(base, p.Name)
			p.TimeLimit = cmp.Or(p.TimeLimit, defaultPluginTimeLimit)
		}
		if p.TimeLimit == 0 {
			p.TimeLimit = defaultTimeLimit
		}
		if p.SurveyEvery == 0 {
			p.SurveyEvery = defaultSurveyEvery
		}
		if p.OrphanGrace == 0 {
			p.OrphanGrace = defaultOrphanGrace
		}
		if p.OutputLimit == 0 {
			p.OutputLimit = defaultOutputLimit
		}
		for i, line := range p.Secrets {
			if name, file, named := strings.Cut(line, "="); named && file != "" {
				p.Secrets[i] = name + "=" + resolve(base, file)
			}
		}
		if strings.Contains(p.Script, "/") {
			p.Script = resolve(base, p.Script)
		}
	}
	c.Slurm.complete(base)
	if !store.IsShared(c.Controller.State) {
		c.Controller.State = resolve(base, c.Controller.State)
	}
	for _, path := range []*string{
		&c.Controller.TLS.CA, &c.Controller.TLS.Cert, &c.Controller.TLS.Key,
		&c.Peer.CA, &c.Peer.Cert, &c.Peer.Key, &c.Agent.Folder,
	} {
		*path = resolve(base, *path)
	}
	for _, path := range []*string{
		&c.Controller.CAKey, &c.Controller.Record, &c.Controller.TLS.CRL,
		&c.Temporal.TLS.CA, &c.Temporal.TLS.Cert, &c.Temporal.TLS.Key, &c.Temporal.APIKeyFile, &c.Temporal.Codec.Keys,
	} {
		if *path != "" {
			*path = resolve(base, *path)
		}
	}
}

func resolve(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// validate checks everything that can be checked without asking anyone.
func (c *Config) validate() cluster.Problems {
	ps := cluster.ValidateResources(c.Resources, c.ProviderNames(), c.Cluster.SessionInterval)
	if !cluster.ValidName(c.Cluster.Name) {
		ps = append(ps, cluster.Problem{Path: "cluster.name", What: fmt.Sprintf("name %q is not valid", c.Cluster.Name), Remedy: "name the cluster, with letters, digits, '.', '_' or '-'"})
	}
	if c.Cluster.SessionInterval < 100*cluster.Millisecond {
		ps = append(ps, cluster.Problem{Path: "cluster.session_interval", What: fmt.Sprintf("%s is too short", c.Cluster.SessionInterval), Remedy: "write at least 100ms"})
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level) {
		ps = append(ps, cluster.Problem{Path: "log.level", What: fmt.Sprintf("%q is no level", c.Log.Level), Remedy: "write debug, info, warn or error"})
	}
	if !slices.Contains([]string{"text", "json"}, c.Log.Format) {
		ps = append(ps, cluster.Problem{Path: "log.format", What: fmt.Sprintf("%q is no format", c.Log.Format), Remedy: "write text or json"})
	}
	if c.Controller.RecordLimitMB < leastRecordMB {
		ps = append(ps, cluster.Problem{Path: "controller.record_limit_mb", What: fmt.Sprintf("%d is too little", c.Controller.RecordLimitMB), Remedy: fmt.Sprintf("write at least %d", leastRecordMB)})
	}
	if c.Agent.CPUs < 0 {
		ps = append(ps, cluster.Problem{Path: "agent.cpus", What: fmt.Sprintf("%d is negative", c.Agent.CPUs), Remedy: "write a positive whole number, or 0 for all"})
	}
	if c.Agent.MemoryMB < 0 {
		ps = append(ps, cluster.Problem{Path: "agent.memory_mb", What: fmt.Sprintf("%d is negative", c.Agent.MemoryMB), Remedy: "write 0 or a positive whole number"})
	}
	ps = append(ps, c.Controller.validate()...)
	ps = append(ps, c.Controller.Limits.Validate("controller.limits")...)
	ps = append(ps, c.validateSlurm()...)
	ps = append(ps, c.Hosts.Validate(c.Cluster.SessionInterval)...)
	ps = append(ps, c.Leases.Validate("leases")...)
	ps = append(ps, c.Provisioner.validate(c.ProviderNames())...)
	_, faults := c.Agent.Capacity()
	ps = append(ps, faults...)
	ps = append(ps, snapshot.ValidatePolicy("policy", c.Policy)...)
	ps = append(ps, snapshot.ValidateThresholds("thresholds", c.Thresholds, c.resourceNames())...)
	ps = append(ps, c.Farm().Validate("simulation")...)
	for i, p := range c.Providers {
		ps = append(ps, p.validate(fmt.Sprintf("providers[%d]", i), c.Providers[:i])...)
	}
	return ps
}

func (p Provider) validate(at string, before []Provider) (ps cluster.Problems) {
	add := func(key, what, remedy string) {
		ps = append(ps, cluster.Problem{Path: at + "." + key, What: what, Remedy: remedy})
	}
	if !cluster.ValidName(p.Name) {
		add("name", fmt.Sprintf("name %q is not valid", p.Name), "use letters, digits, '.', '_' or '-'")
	}
	if p.Name == "hosts" {
		add("name", `no provider can be called "hosts", as the cluster's own limits are`, "use another name")
	}
	if i := slices.IndexFunc(before, func(o Provider) bool { return o.Name == p.Name }); i >= 0 {
		add("name", fmt.Sprintf("provider %q is already defined as providers[%d]", p.Name, i), "give each provider one entry")
	}
	limit := cluster.DurationOf(workflows.LongestScript)
	switch {
	case p.HostFactory != nil && p.Script != "":
		add("hostfactory", "there is a script as well", "keep one of the two")
	case p.HostFactory != nil:
		ps = append(ps, p.HostFactory.validate(at+".hostfactory")...)
		limit = cluster.DurationOf(hostfactory.LongestTimeLimit)
	case p.Script == "":
		add("script", "there is no script", "name the provider script, as a path or a program on PATH")
	}
	if p.TimeLimit < cluster.Second || p.TimeLimit > limit {
		add("time_limit", fmt.Sprintf("%s is out of range", p.TimeLimit), fmt.Sprintf("write between 1s and %s", limit))
	}
	if p.SurveyEvery < cluster.Second {
		add("survey_every", fmt.Sprintf("%s is too short", p.SurveyEvery), "write at least 1s")
	}
	if p.OrphanGrace < 0 {
		add("orphan_grace", fmt.Sprintf("%s is negative", p.OrphanGrace), "write a length of time such as 10m")
	}
	if p.OutputLimit < 1024 {
		add("output_limit", fmt.Sprintf("%d bytes are too few", p.OutputLimit), "write at least 1024")
	}
	for i, line := range p.Environment {
		// A line may hold a secret, so it is not shown.
		if name, _, ok := strings.Cut(line, "="); !ok || name == "" {
			add(fmt.Sprintf("environment[%d]", i), "the line is not NAME=VALUE", "write NAME=VALUE")
		}
	}
	for i, line := range p.Secrets {
		at := fmt.Sprintf("secrets[%d]", i)
		switch name, file, _ := strings.Cut(line, "="); {
		case name == "" || file == "":
			add(at, "the line is not NAME=FILE", "write NAME=FILE, the file that the secret is in")
		case slices.ContainsFunc(p.Secrets[:i], func(o string) bool { return strings.HasPrefix(o, name+"=") }):
			add(at, "there is a secret of that name already", "give each a name of its own")
		}
	}
	return ps
}

// Farm answers the cluster as it is simulated.
func (c *Config) Farm() simulation.Farm {
	farm := simulation.Farm{
		Name: c.Cluster.Name, SessionInterval: c.Cluster.SessionInterval, Resources: c.Resources, Rules: c.Hosts,
		Policy: c.Policy, Thresholds: c.Thresholds, Settings: c.Simulation,
	}
	for _, p := range c.Providers {
		farm.Providers = append(farm.Providers, simulation.Provider{Name: p.Name, SurveyEvery: p.SurveyEvery, OrphanGrace: p.OrphanGrace})
	}
	return farm
}

// ProviderNames answers the names of the providers.
func (c *Config) ProviderNames() []string {
	names := make([]string, len(c.Providers))
	for i, p := range c.Providers {
		names[i] = p.Name
	}
	return names
}

func (c *Config) resourceNames() []string {
	names := make([]string, len(c.Resources))
	for i, r := range c.Resources {
		names[i] = r.Name
	}
	return names
}

// Shown answers the configuration as it may be printed: the values of the
// scripts' environment, which may be secret, are left out.
func (c *Config) Shown() *Config {
	shown := *c
	shown.Providers = slices.Clone(c.Providers)
	for i, p := range shown.Providers {
		lines := make([]string, len(p.Environment))
		for j, line := range p.Environment {
			name, _, _ := strings.Cut(line, "=")
			lines[j] = name + "=(not shown)"
		}
		shown.Providers[i].Environment = lines
	}
	return &shown
}

// Plugin answers what the adapter of a plug-in needs; false where there is none.
func (p Provider) Plugin() (hostfactory.Spec, bool) {
	if p.HostFactory == nil {
		return hostfactory.Spec{}, false
	}
	return p.HostFactory.spec(p), true
}

// Spec answers what the runner needs to run the provider's script.
func (p Provider) Spec() providers.Spec {
	return providers.Spec{
		Name: p.Name, Script: p.Script, Environment: pairs(p.Environment), User: p.User, Secrets: pairs(p.Secrets),
		TimeLimit: time.Duration(p.TimeLimit) * time.Millisecond, OutputLimit: p.OutputLimit,
	}
}

// pairs reads lines NAME=VALUE.
func pairs(lines []string) map[string]string {
	values := map[string]string{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, "=")
		values[name] = value
	}
	return values
}
