package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

const (
	// Durable is how long a change of a reservation takes until a crash of slurmctld cannot undo
	// it: the state is written every five seconds. Tokens go back to their lender no sooner.
	Durable = 6 * cluster.Second
	// lasts is how long a reservation is made for, and renewWithin how long before its end it is
	// made longer: at the end it is gone and jobs take what it kept.
	lasts       = "365days"
	renewWithin = 180 * 24 * cluster.Hour
	// mostRounds is how often a change is tried that Slurm does not keep.
	mostRounds = 4
)

// Withhold lets jobs use at most usable units of a shared resource, by a reservation of its licence
// alone: one for each licence, since an update names all licences of a reservation anew,
// and so a stale view would change what is kept back of another. It answers what is so
// when it has been done, as Slurm says. An error with it says why it is not what was asked for; [*backend.Unknown]
// where nobody knows, [*backend.NotYet] where Used cannot be believed yet. A repeated call changes nothing.
//
// To fence, take units out of usable and then read Used of the answer: the ceiling less
// Withheld less Used is provably unused. What is fenced goes back no sooner than [Durable] later.
func (b *Backend) Withhold(ctx context.Context, resource string, usable int64) (backend.Resource, error) {
	name, known := b.Licences[resource]
	if !known {
		return backend.Resource{}, fmt.Errorf("shared resource %s has no licence of Slurm; name it under slurm.licences", resource)
	}
	if usable < 0 {
		return backend.Resource{}, fmt.Errorf("shared resource %s: %d usable units make no sense", resource, usable)
	}
	b.one.Lock()
	defer b.one.Unlock()
	r, err := b.keepBack(ctx, resource, name, usable)
	if err == nil {
		b.ours.note(resource, r, b.Now())
	}
	return r, err
}

// keepBack keeps back what is more than usable units of a licence, and what others have added to that where they are respected.
func (b *Backend) keepBack(ctx context.Context, resource, name string, usable int64) (backend.Resource, error) {
	var refusal error
	theirs, before := int64(-1), int64(0) // what others have added is read once, before anything is changed
	for round := range mostRounds {
		r, next, err := b.look(ctx, resource, name, usable, &theirs)
		if round == 0 {
			before = r.Withheld
		}
		if r.Before = before; err != nil || next.command == nil {
			return r, err
		}
		b.ours.about(resource, next.want-theirs, b.Now())
		b.Log.Info("change what is kept back", "licence", name, "usable", usable, "command", strings.Join(next.command, " "))
		_, refusal = b.Commands.Run(ctx, "scontrol", next.command...)
		switch {
		case IsRefused(refusal, Forbidden):
			return r, fmt.Errorf("licence %s: we may not make reservations in Slurm; run as SlurmUser or as an operator (sacctmgr modify user set adminlevel=operator): %w", name, refusal)
		case refusal != nil && !IsRefused(refusal):
			return r, refusal
		}
	}
	r, next, err := b.look(ctx, resource, name, usable, &theirs)
	if r.Before = before; err == nil && next.command != nil {
		err = fmt.Errorf("licence %s: Slurm keeps back %d, not %d, though it was told %d times; see the log of slurmctld: %w", name, r.Withheld, next.want, mostRounds, errOr(refusal, "it does not say why"))
	}
	return r, err
}

func errOr(err error, otherwise string) error {
	if err == nil {
		return errors.New(otherwise)
	}
	return err
}

// look reads how a licence stands and what is to be done about it. Where it is less than 0, theirs becomes
// what others have added to our reservation, where that is respected.
func (b *Backend) look(ctx context.Context, resource, name string, usable int64, theirs *int64) (backend.Resource, keepBack, error) {
	reservations, err := b.Commands.Reservations(ctx)
	if err != nil {
		return backend.Resource{}, keepBack{}, err
	}
	// The licences are read last, so that Used is of a time when what is read as kept back was.
	licences, err := b.Commands.Licences(ctx)
	if err != nil {
		return backend.Resource{}, keepBack{}, err
	}
	l, there := licences[name]
	if !there {
		return backend.Resource{}, keepBack{}, fmt.Errorf("licence %s is not in Slurm; add it with the most that could ever be had, to Licenses in slurm.conf or by sacctmgr add resource, and never remove it while jobs ask for it", name)
	}
	ours := reservationName(b.Reservation, name)
	r := resourceOf(l, reservations, ours)
	if *theirs < 0 {
		*theirs = 0
		if b.Respect {
			*theirs = b.ours.added(resource, r)
		}
	}
	next, err := plan(b.Now(), l, reservations, ours, b.ReservationUser, max(usable-*theirs, 0))
	r = asTheirs(r, min(*theirs, r.Withheld))
	if err != nil || next.command != nil {
		return r, next, err
	}
	settings, err := b.settings(ctx)
	if err != nil {
		return r, next, err
	}
	if since := b.starts.since(settings.Booted, b.Now()); since < b.Grace {
		err = &backend.NotYet{Why: fmt.Sprintf("slurmctld started %s ago, and counts used tokens anew", since)}
	}
	return r, next, err
}

// reservationName answers the name of the reservation that keeps a licence back.
func reservationName(prefix, licence string) string { return prefix + "." + licence }

// resourceOf answers how Slurm counts a licence, of which the reservation ours keeps back. What Slurm
// counts as reserved decides, not what a reservation says: after an update of a reservation that
// was refused Slurm counts nothing of it, though it still shows the licences.
func resourceOf(l Licence, all []Reservation, ours string) backend.Resource {
	var mine, others int64
	for _, r := range all {
		switch {
		case r.State != "ACTIVE":
		case r.Name == ours:
			mine = r.Licences[l.Name]
		default:
			others += r.Licences[l.Name]
		}
	}
	withheld := min(mine, max(0, l.Reserved-others))
	// Jobs of others' reservations cannot take what ours keeps back, however much they reserve.
	reserved := min(l.Reserved-withheld, max(0, l.Total-withheld))
	return backend.Resource{Ceiling: l.Total, Used: l.Used, Withheld: withheld, Reserved: reserved, Elsewhere: max(0, l.Deficit)}
}

// keepBack is what is to be done about a licence.
type keepBack struct {
	want    int64    // units that are to be kept back
	command []string // of scontrol; nil where nothing is to be done
}

// plan answers what makes jobs able to use at most usable units of a licence. No count is
// out of the range that Slurm takes: it would refuse the update, and forget the reservation's
// licences as it does so.
//
// A reservation cannot be made that asks, at any time until its end, for more than others leave; one that is there can be
// changed to do so. Then jobs in others' reservations have what both leave, and jobs in none have nothing: so ours is made as
// large as it can be, and then keeps back all of it, whenever others' begin.
func plan(now cluster.Time, l Licence, all []Reservation, ours, user string, usable int64) (keepBack, error) {
	if l.Total < 0 || l.Total > mostUnits {
		return keepBack{}, fmt.Errorf("licence %s: a total of %d makes no sense; set it anew in Slurm", l.Name, l.Total)
	}
	k := keepBack{want: max(0, l.Total-usable)}
	i := slices.IndexFunc(all, func(r Reservation) bool { return r.Name == ours })
	count := fmt.Sprintf("licenses=%s:%d", l.Name, k.want)
	end := "endtime=now+" + lasts
	switch {
	case i < 0 && k.want == 0:
	case i < 0:
		made := fmt.Sprintf("licenses=%s:%d", l.Name, min(k.want, leftBy(all, l)))
		k.command = []string{"create", "reservation", "reservationname=" + ours, "starttime=now", end, "users=" + user, "flags=LICENSE_ONLY", made}
	case len(all[i].Nodes) > 0:
		return keepBack{}, fmt.Errorf("reservation %s has hosts, so it is not ours; delete or rename it, or set slurm.reservation to another name", ours)
	case k.want == 0, all[i].State != "ACTIVE":
		k.command = []string{"delete", "reservationname=" + ours}
	case all[i].End.Sub(now) < renewWithin:
		k.command = []string{"update", "reservationname=" + ours, end, count}
	case len(all[i].Licences) != 1 || all[i].Licences[l.Name] != k.want || resourceOf(l, all, ours).Withheld != k.want:
		k.command = []string{"update", "reservationname=" + ours, count}
	}
	return k, nil
}

// leftBy answers how many units of a licence all reservations together leave, those that begin later among them.
func leftBy(all []Reservation, l Licence) int64 {
	left := l.Total
	for _, r := range all {
		left -= r.Licences[l.Name]
	}
	return max(0, left)
}

// mostUnits is more than any licence has: Slurm turns -1 into 42949671 and counts in 32 bits.
const mostUnits = 40_000_000

// Foreign says what of a shared resource someone else has changed in Slurm between two
// readings, when nothing of it was changed by us: each in one sentence.
func Foreign(name string, was, is backend.Resource) []string {
	var said []string
	if was.Ceiling != is.Ceiling {
		said = append(said, fmt.Sprintf("The total of %s in Slurm was changed from %d to %d by someone else; jobs that ask for more than the total are refused.", name, was.Ceiling, is.Ceiling))
	}
	switch {
	case was.Withheld > is.Withheld:
		said = append(said, fmt.Sprintf("Slurm keeps back %d units of %s and not %d: someone else changed our reservation, or slurmctld lost it; jobs may take units that are not had.", is.Withheld, name, was.Withheld))
	case was.Withheld < is.Withheld:
		said = append(said, fmt.Sprintf("Slurm keeps back %d units of %s and not %d: someone else changed our reservation; jobs wait for units that are had.", is.Withheld, name, was.Withheld))
	}
	if was.Reserved != is.Reserved {
		said = append(said, fmt.Sprintf("Others keep back %d units of %s by reservations of their own, and kept back %d before.", is.Reserved, name, was.Reserved))
	}
	return said
}
