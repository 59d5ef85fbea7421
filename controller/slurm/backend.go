package slurm

import (
	"log/slog"

	"xce.internal/elastic/cluster"
)

// DefaultReservation is the name of the reservation that keeps tokens back, where nothing else is said.
const DefaultReservation = "xce-withheld"

// Options say how a cluster is scheduled by Slurm.
type Options struct {
	Commands Commands
	// Licences are Slurm's names of the shared resources, by our name of each.
	Licences map[string]string
	// Reservation is the name of the reservation that keeps tokens back; empty is [DefaultReservation].
	// ReservationUser is whose it is, a user who runs no jobs; empty is root.
	Reservation, ReservationUser string
	// Hosts say how the hosts of a template come and go, by the template's name.
	Hosts map[string]HostOptions
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
	// Cloud hosts are in slurm.conf with State=CLOUD, and stay drained while they are away.
	Cloud HostKind = "cloud"
	// Future hosts are in slurm.conf with State=FUTURE, and appear when their slurmd registers.
	Future HostKind = "future"
)

// HostOptions say how the hosts of one template come and go.
type HostOptions struct {
	Kind HostKind // empty is Dynamic
	// Features and Gres are what a host has in Slurm beside what its template says, so that
	// the node sets of partitions take it.
	Features []string
	Gres     map[string]int64
}

// Backend is a cluster that is scheduled by Slurm.
type Backend struct {
	Options
}

// New makes a backend; it asks nothing of Slurm yet.
func New(o Options) *Backend {
	if o.Reservation == "" {
		o.Reservation = DefaultReservation
	}
	if o.ReservationUser == "" {
		o.ReservationUser = "root"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{Options: o}
}
