package slurm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

// reading is all that was read of Slurm at one time.
type reading struct {
	at           cluster.Time
	jobs         []Job
	nodes        []Node
	partitions   []Partition
	before       map[string]Licence // as they were before the jobs were listed
	licences     map[string]Licence // as they were when all else had been read
	reservations []Reservation
	settings     Settings
}

// Look reads what Slurm has. Where that must not be acted upon the error is a
// [*backend.NotYet], and where Slurm did not answer a [*backend.Unknown].
func (b *Backend) Look(ctx context.Context) (backend.View, error) {
	if b.Prepare != nil {
		if err := b.Prepare(); err != nil {
			return backend.View{}, fmt.Errorf("look at Slurm: %w", err)
		}
	}
	r, err := b.read(ctx)
	if err != nil {
		return backend.View{}, fmt.Errorf("look at Slurm: %w", err)
	}
	doubted, err := b.judge(r)
	if err != nil {
		return backend.View{}, fmt.Errorf("look at Slurm: %w", err)
	}
	v := b.view(r)
	b.noteUnlisted(v, r.before)
	b.believe(v.Resources, doubted)
	return v, nil
}

// read reads everything. Licences come after the reservations, so that what is used is of a
// time when what is kept back was, and before the jobs too, for [Backend.noteUnlisted]. The settings are
// the last: where slurmctld started again while the rest was read, they tell of the new start.
func (b *Backend) read(ctx context.Context) (r reading, err error) {
	r.at = b.Now()
	if r.before, err = b.Commands.Licences(ctx); err != nil {
		return r, err
	}
	if r.jobs, err = b.Commands.Jobs(ctx); err != nil {
		return r, err
	}
	if r.nodes, err = b.Commands.Nodes(ctx); err != nil {
		return r, err
	}
	if r.partitions, err = b.Commands.Partitions(ctx); err != nil {
		return r, err
	}
	if r.reservations, err = b.Commands.Reservations(ctx); err != nil {
		return r, err
	}
	if r.licences, err = b.Commands.Licences(ctx); err != nil {
		return r, err
	}
	r.settings, err = b.settings(ctx)
	return r, err
}

// judge answers which licences are doubted, and why.
func (b *Backend) judge(r reading) (doubted map[string]string, err error) {
	b.judging.Lock()
	defer b.judging.Unlock()
	b.guard, doubted, err = b.guard.Judge(factsOf(r, b.licenceNames()))
	return doubted, err
}

// noteUnlisted notes how many of the used units none of the view's jobs has. Jobs start and end while all is read: what
// was not used before as well as after they were listed, at this reading and at the last, does not count.
func (b *Backend) noteUnlisted(v backend.View, before map[string]Licence) {
	b.judging.Lock()
	defer b.judging.Unlock()
	last, listed := b.unlisted, backend.Listed(v.Jobs)
	b.unlisted = map[string]int64{}
	for our, r := range v.Resources {
		now := max(0, min(before[b.Options.Licences[our]].Used, r.Used)-listed[our])
		b.unlisted[our] = now
		r.Unlisted = min(now, last[our])
		v.Resources[our] = r
	}
}

// believe puts what was last believed in the place of what is doubted of resources, and keeps what is believed.
func (b *Backend) believe(resources map[string]backend.Resource, doubted map[string]string) {
	b.judging.Lock()
	defer b.judging.Unlock()
	for our, licence := range b.Options.Licences {
		if why := doubted[licence]; why != "" {
			r, known := b.believed[our]
			if !known {
				r = resources[our]
			}
			r.Doubted = why
			resources[our] = r
		}
	}
	b.believed = map[string]backend.Resource{}
	for our, r := range resources {
		r.Doubted = ""
		b.believed[our] = r
	}
}

// view answers a reading in our words.
func (b *Backend) view(r reading) backend.View {
	t := Translation{
		Resources: b.Options.Licences, Licences: r.licences, Partitions: r.partitions, At: r.at, Grace: b.JobGrace,
		WholeNodes: r.settings.Keys["selecttype"] == "select/linear",
	}
	v := backend.View{At: r.at}
	v.Jobs, v.Warnings = t.Jobs(r.jobs)
	v.Hosts, v.Placeholders = hostsAndPlaceholders(r.nodes, r.jobs)
	b.standIns(v)
	var warnings []string
	v.Resources, warnings = resourcesOf(b.Options.Licences, r.licences, r.reservations, b.Reservation)
	v.Warnings = append(v.Warnings, warnings...)
	v.Warnings = append(v.Warnings, b.drifts.warnings(b.licenceNames(), r.jobs, r.licences)...)
	v.Warnings = append(v.Warnings, b.foreign(v.Resources, r.at)...)
	return v
}

// standsFor answers the template that a node stands for.
func standsFor(n *Node) (template string, is bool) {
	template, is = strings.CutPrefix(n.Name, PlaceholderName(""))
	return template, is && template != "" && isPlaceholder(n)
}

// standIns marks the hosts of slurm.conf that are a template's; the first of them
// stands for the template.
func (b *Backend) standIns(v backend.View) {
	for i := range v.Hosts {
		h := &v.Hosts[i]
		template, is := b.templates[h.Name]
		if !is {
			continue
		}
		h.Ours = true
		if _, stands := v.Placeholders[template]; !stands {
			v.Placeholders[template] = *h
		}
	}
}

// hostsAndPlaceholders answers the hosts, and those that only stand for a template.
func hostsAndPlaceholders(nodes []Node, jobs []Job) ([]backend.Host, map[string]backend.Host) {
	busy := map[string]int64{}
	for i := range jobs {
		for _, name := range jobs[i].On {
			busy[name]++
		}
	}
	hosts := make([]backend.Host, 0, len(nodes))
	placeholders := map[string]backend.Host{}
	for i := range nodes {
		n := &nodes[i]
		h := asHost(*n)
		if template, is := standsFor(n); is {
			placeholders[template] = h
			continue
		}
		h.Busy = max(h.Busy, busy[n.Name])
		hosts = append(hosts, h)
	}
	slices.SortFunc(hosts, func(a, b backend.Host) int { return strings.Compare(a.Name, b.Name) })
	return hosts, placeholders
}

// resourcesOf answers how Slurm counts our resources.
func resourcesOf(names map[string]string, licences map[string]Licence, reservations []Reservation, prefix string) (map[string]backend.Resource, []string) {
	resources := make(map[string]backend.Resource, len(names))
	var warnings []string
	for _, our := range slices.Sorted(maps.Keys(names)) {
		l, ok := licences[names[our]]
		if !ok {
			warnings = append(warnings, fmt.Sprintf("Slurm has no licence %s, which is our %s: jobs that need it run without; put it back into Slurm's configuration.", names[our], our))
			continue
		}
		r := resourceOf(l, reservations, reservationName(prefix, l.Name))
		switch {
		case l.Used > l.Total:
			warnings = append(warnings, fmt.Sprintf("%d tokens of licence %s are used, and its total in Slurm is %d; none starts until enough come back.", l.Used, l.Name, l.Total))
		case r.Used > r.Ceiling-r.Withheld:
			warnings = append(warnings, fmt.Sprintf("%d tokens of licence %s are used, and %d are had; none starts until enough come back.", l.Used, l.Name, r.Ceiling-r.Withheld))
		}
		resources[our] = r
	}
	return resources, warnings
}
