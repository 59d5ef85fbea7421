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
	licences     map[string]Licence
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
	if err := b.judge(r); err != nil {
		return backend.View{}, fmt.Errorf("look at Slurm: %w", err)
	}
	return b.view(r), nil
}

// read reads everything. Licences come after the reservations, so that what is used is of a
// time when what is kept back was. The settings are the last: where slurmctld started again
// while the rest was read, they tell of the new start.
func (b *Backend) read(ctx context.Context) (r reading, err error) {
	r.at = b.Now()
	if r.jobs, err = b.Commands.Jobs(ctx); err != nil {
		return r, err
	}
	if r.nodes, err = b.Commands.Nodes(ctx); err != nil {
		return r, err
	}
	if r.reservations, err = b.Commands.Reservations(ctx); err != nil {
		return r, err
	}
	if r.licences, err = b.Commands.Licences(ctx); err != nil {
		return r, err
	}
	r.settings, err = b.Commands.Settings(ctx)
	return r, err
}

func (b *Backend) judge(r reading) error {
	b.judging.Lock()
	defer b.judging.Unlock()
	var err error
	b.guard, err = b.guard.Judge(factsOf(r.settings, r.jobs, r.nodes, r.licences))
	return err
}

// view answers a reading in our words.
func (b *Backend) view(r reading) backend.View {
	t := Translation{
		Resources: b.Options.Licences, Licences: r.licences, At: r.at, Grace: b.JobGrace,
		WholeNodes: r.settings.Keys["selecttype"] == "select/linear",
	}
	v := backend.View{At: r.at}
	v.Jobs, v.Warnings = t.Jobs(r.jobs)
	v.Hosts, v.Placeholders = hostsOf(r.nodes, r.jobs)
	b.standIns(v)
	var warnings []string
	v.Resources, warnings = resourcesOf(b.Options.Licences, r.licences, r.reservations, b.Reservation)
	v.Warnings = append(v.Warnings, warnings...)
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
	for template, o := range b.Hosts {
		names, err := hosts(o.Nodes)
		if err != nil || o.Kind != Cloud && o.Kind != Future {
			continue
		}
		for i := range v.Hosts {
			h := &v.Hosts[i]
			if !slices.Contains(names, h.Name) {
				continue
			}
			h.Ours = true
			if _, stands := v.Placeholders[template]; !stands {
				v.Placeholders[template] = *h
			}
		}
	}
}

// hostsOf answers the hosts, and those that only stand for a template.
func hostsOf(nodes []Node, jobs []Job) ([]backend.Host, map[string]backend.Host) {
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
		h := hostOf(*n)
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
		if l.Used > l.Total {
			warnings = append(warnings, fmt.Sprintf("%d tokens of licence %s are used, and its total in Slurm is %d; none starts until enough come back.", l.Used, l.Name, l.Total))
		}
		resources[our] = resourceOf(l, reservations, reservationName(prefix, l.Name))
	}
	return resources, warnings
}
