package slurm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// DefaultReservation begins the names of the reservations that keep tokens back, where nothing else is said.
const DefaultReservation = "xce-withheld"

// Graces of [Options] where nothing else is said.
const (
	DefaultGrace    = 30 * cluster.Second
	DefaultJobGrace = 5 * cluster.Second
)

// Options say how a cluster is scheduled by Slurm.
type Options struct {
	Commands Commands
	// Prepare brings up to date what the commands read of Slurm's configuration; it is called before
	// each look. Nil where nothing is to be done.
	Prepare func() error
	// Licences are Slurm's names of the shared resources, by our name of each.
	Licences map[string]string
	// Reservation begins the names of the reservations that keep tokens back, one for each licence; empty is [DefaultReservation].
	// ReservationUser is whose they are, a user who runs no jobs; empty is root.
	Reservation, ReservationUser string
	// Grace is for how long after slurmctld's start its counts of used tokens are not believed,
	// since its jobs come back one by one; 0 is [DefaultGrace].
	Grace cluster.Duration
	// Hosts say how the hosts of a template come and go, by the template's name.
	Hosts map[string]HostOptions
	// Respect has us leave it so where someone else keeps back more by our reservations than we do;
	// otherwise what they do to our reservations is undone.
	Respect bool
	// JobGrace is how long Slurm is given to look at a new job before that raises demand; 0 is [DefaultJobGrace].
	JobGrace cluster.Duration
	// Now is the time, such as of time.Now; Log is where what was done is told.
	Now func() cluster.Time
	Log *slog.Logger
}

// HostKind says how Slurm knows the hosts of a template.
type HostKind string

// Kinds of hosts.
const (
	// Dynamic hosts are made at run time, and no configuration names them.
	Dynamic HostKind = "dynamic"
	// Cloud hosts are in slurm.conf with State=CLOUD, and stay drained while they are away. Their ResumeProgram
	// and SuspendProgram have nothing to do, their slurmd is started with -b, and ResumeTimeout is longer than a machine takes.
	Cloud HostKind = "cloud"
	// Future hosts are in slurm.conf with State=FUTURE, and appear when their slurmd registers.
	Future HostKind = "future"
)

// HostOptions say how the hosts of one template come and go.
type HostOptions struct {
	Kind HostKind // empty is Dynamic
	// Nodes are those of slurm.conf that are ours to take in and out, as in "c[1-16]"; empty for Dynamic.
	// Every other node that slurm.conf names is never touched but to drain it and to undo that.
	Nodes string
	// Features and Gres are what a host has in Slurm beside what its template says, so that
	// the node sets of partitions take it.
	Features []string
	Gres     map[string]int64
}

// oneLicence is the name of one licence, with the server of a remote one; Slurm takes lists with counts too.
var oneLicence = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+-]*(@[A-Za-z0-9_.-]+)?$`)

// Check answers what is wrong with the options, all of it.
func (o Options) Check() error {
	var wrong []error
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("slurm."+format, args...)) }
	of := map[string]string{}
	for _, resource := range slices.Sorted(maps.Keys(o.Licences)) {
		licence := o.Licences[resource]
		if !oneLicence.MatchString(licence) {
			say("licences.%s: %q is no name of a licence, as in vcs or vcs@pool", resource, licence)
		} else if other, taken := of[licence]; taken {
			say("licences.%s: %s is the licence of %s already; give each shared resource one of its own", resource, licence, other)
		}
		of[licence] = resource
	}
	if o.Reservation != "" && !oneHost.MatchString(o.Reservation) {
		say("reservation: %q cannot begin a name; use letters, digits and . _ -", o.Reservation)
	}
	if o.ReservationUser != "" && !oneHost.MatchString(o.ReservationUser) {
		say("reservation_user: %q is no user", o.ReservationUser)
	}
	templates := map[string]string{}
	for _, template := range slices.Sorted(maps.Keys(o.Hosts)) {
		h := o.Hosts[template]
		names, err := namesIn(h.Nodes)
		declared := h.Kind == Cloud || h.Kind == Future
		switch {
		case err != nil:
			say("templates[%s].nodes: %w", template, err)
		case !declared && h.Kind != Dynamic && h.Kind != "":
			say("templates[%s].kind: %q is none of %s, %s and %s", template, h.Kind, Dynamic, Cloud, Future)
		case declared != (len(names) > 0):
			say("templates[%s].nodes: the hosts of kind %s and %s are named here, and no others; found %q", template, Cloud, Future, h.Nodes)
		}
		for _, name := range names {
			if other, taken := templates[name]; taken {
				say("templates[%s].nodes: %s is of template %s already", template, name, other)
			}
			templates[name] = template
		}
	}
	return errors.Join(wrong...)
}

// declared answers the templates of the hosts of slurm.conf that are ours, by the hosts' names. A list that
// cannot be read, which [Options.Check] tells of, names none.
func (o Options) declared() map[string]string {
	templates := map[string]string{}
	for _, template := range slices.Sorted(maps.Keys(o.Hosts)) {
		if h := o.Hosts[template]; h.Kind == Cloud || h.Kind == Future {
			names, _ := namesIn(h.Nodes)
			for _, name := range names {
				templates[name] = template
			}
		}
	}
	return templates
}

// kindOf answers how Slurm knows a host of slurm.conf that is ours; "" where it is not ours.
func (b *Backend) kindOf(host string) HostKind {
	if template, is := b.templates[host]; is {
		return b.Hosts[template].Kind
	}
	return ""
}

// Backend is a cluster that is scheduled by Slurm.
type Backend struct {
	Options
	// templates are those of the hosts of slurm.conf that are ours, by the hosts' names.
	templates map[string]string
	// one lets one change of tokens through at a time.
	one sync.Mutex
	// ours is what others change is held against.
	ours changesOfOurs
	// drifts is how far Slurm's counts of used tokens are from what its jobs ask for.
	drifts drifts
	// guard has seen the readings so far, one of which is judged at a time.
	guard Guard
	// believed is how the resources were counted when that was last not doubted.
	believed map[string]backend.Resource
	// unlisted is how many units of each resource were used at the last reading that none of its jobs had.
	unlisted map[string]int64
	judging  sync.Mutex
	// starts tells when slurmctld was seen to start.
	starts starts
}

// New makes a backend; it asks nothing of Slurm yet.
func New(o Options) *Backend {
	if o.Reservation == "" {
		o.Reservation = DefaultReservation
	}
	if o.ReservationUser == "" {
		o.ReservationUser = "root"
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.JobGrace == 0 {
		o.JobGrace = DefaultJobGrace
	}
	if o.Now == nil {
		o.Now = func() cluster.Time { return cluster.TimeOf(time.Now()) }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{Options: o, templates: o.declared()}
}

// Name is what people call it.
func (b *Backend) Name() string { return "Slurm" }

// Lasting is [Durable].
func (b *Backend) Lasting() time.Duration { return Durable.Std() }

// stoppable are the states of jobs that a requeue has wait again: those that are just ending end.
const stoppable = "RUNNING,SUSPENDED,STOPPED,CONFIGURING"

// Requeue stops the jobs that are on a host now, so that they wait again. One that may not be run again, or has
// just ended, is left alone. It is an error where we may not stop jobs.
func (b *Backend) Requeue(ctx context.Context, host string) error {
	if err := nameOne(host); err != nil {
		return err
	}
	out, err := b.Commands.Run(ctx, "squeue", "--noheader", "--all", "--local", "--nodelist="+host, "--states="+stoppable, "--format=%A")
	switch {
	case IsRefused(err, NoSuch):
		return nil
	case err != nil:
		return fmt.Errorf("requeue the jobs on %s: %w", host, err)
	}
	var errs []error
	for job := range strings.FieldsSeq(string(out)) {
		_, err := b.Commands.Run(ctx, "scontrol", "requeue", job)
		switch {
		case IsRefused(err, Forbidden):
			return fmt.Errorf("host %s: we may not stop jobs in Slurm; run as SlurmUser or as an operator (sacctmgr modify user set adminlevel=operator): %w", host, err)
		case IsRefused(err):
			b.Log.Warn("a job is not stopped to wait again", "host", host, "job", job, "why", err)
		case err != nil:
			errs = append(errs, fmt.Errorf("requeue job %s on %s: %w", job, host, err))
		}
	}
	return errors.Join(errs...)
}
