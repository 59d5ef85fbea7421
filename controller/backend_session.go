package controller

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/backend"
	"xce.internal/elastic/controller/store"
	"xce.internal/elastic/scheduling"
)

// backendAgent stands in for the agent of a host that has none of ours.
const backendAgent = "backend"

// mirror brings the hosts in line with those that the backend has.
func (s *Service) mirror(w *work) error {
	stored, err := w.Hosts()
	if err != nil {
		return err
	}
	elastic, err := w.ElasticHosts("")
	if err != nil {
		return err
	}
	rows := map[string]cluster.ElasticHost{}
	for _, row := range elastic {
		if row.Name != "" {
			rows[row.Name] = row
		}
	}
	known := map[string]store.Host{}
	for _, h := range stored {
		known[h.Name] = h
		if h.Host.ID == "" && w.reading.host(h.Name) == nil {
			if err := w.dropHost(h); err != nil {
				return err
			}
		}
	}
	for i := range w.reading.View.Hosts {
		host := &w.reading.View.Hosts[i]
		if row, ours := rows[host.Name]; ours {
			err = s.mirrorElastic(w, row, host)
		} else {
			err = s.mirrorOwned(w, known, host)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *work) dropHost(h store.Host) error {
	if err := w.DeleteHost(h.Name); err != nil {
		return err
	}
	return w.record(api.Change{Kind: api.KindHost, Subject: h.Name, Why: "the backend knows it no more"}, h.Host, nil)
}

// answers tells whether a host is there.
func answers(h *backend.Host) bool {
	return h.State == backend.HostReady || h.State == backend.HostClosed
}

// mirrorOwned writes down a host that the cluster has for good. What is not there yet, or
// is left of a provider's machine, is none.
func (s *Service) mirrorOwned(w *work, known map[string]store.Host, host *backend.Host) error {
	old, here := known[host.Name]
	if !here {
		if host.Ours || host.State == backend.HostAwaited || host.State == backend.HostRemoving {
			return nil
		}
		if _, was, err := w.ElasticHostNamed(host.Name); err != nil || was {
			return err
		}
	}
	if answers(host) {
		s.heardOf(host.Name, w.now)
	}
	next := store.Host{Name: host.Name, Assigned: old.Assigned, Host: cluster.Host{
		Name: host.Name, Capacity: host.Capacity, Instance: backendAgent, Joined: old.Host.Joined, Closed: host.Why,
	}}
	if !here {
		next.Host.Joined = w.now
	}
	if reflect.DeepEqual(old.Host, next.Host) {
		return nil
	}
	if err := w.SaveHost(next); err != nil || here {
		return err
	}
	return w.record(api.Change{Kind: api.KindHost, Subject: host.Name, Why: "the backend has it"}, nil, next.Host)
}

// mirrorElastic takes in a host that was asked for, and notes how it is.
func (s *Service) mirrorElastic(w *work, row cluster.ElasticHost, host *backend.Host) error {
	if !answers(host) {
		return nil
	}
	if !host.Removable && !host.Ours {
		s.warnOnce(fmt.Sprintf("host %s of %s has the name of a host that the backend has for good, and is not taken in; have %s name its machines otherwise", row.ID, row.Provider, row.Provider))
		return nil
	}
	if row.State == cluster.HostExpected && (host.State == backend.HostReady || host.Drained) {
		c := host.Capacity
		attributes := api.JoinHost{CPUs: c.CPUs, MemoryMB: c.MemoryMB, Countables: c.Countables, Features: c.Features, Attributes: c.Attributes, Instance: backendAgent}
		var refused *Refused
		if _, err := s.admit(w, row.ID, attributes); errors.As(err, &refused) {
			s.warnOnce(row.Name + " is there and is not taken in: " + refused.Text)
		} else if err != nil {
			return err
		}
		return nil
	}
	if !row.State.Here() {
		return nil
	}
	s.heardOf(host.Name, w.now)
	return errors.Join(s.mirrorClosed(w, row, host), w.mirrorLoad(row))
}

// mirrorClosed notes why an elastic host takes no new jobs. One that is closed for a fence that is
// under way counts as open: where it is wanted meanwhile, it is not idle any more, and the fence leaves it.
func (s *Service) mirrorClosed(w *work, row cluster.ElasticHost, host *backend.Host) error {
	old, here, err := w.hostOf(row)
	if err != nil || !here {
		return err
	}
	next := old
	next.Host.Capacity, next.Host.Closed = host.Capacity, host.Why
	if row.Drain != nil || s.closing.closes(row.Name) {
		next.Host.Closed = drains(row)
	}
	if reflect.DeepEqual(old.Host, next.Host) {
		return nil
	}
	return w.SaveHost(next)
}

// mirrorLoad notes how many jobs are on an elastic host, where that is news.
func (w *work) mirrorLoad(row cluster.ElasticHost) error {
	if busy := len(w.reading.byHost[row.Name]) > 0; busy == (row.BusySince > 0) {
		return nil
	}
	return w.loaded(row.Name)
}

// narrow leaves to the session what it may decide on: jobs that hosts or tokens would
// let start, and templates as the backend would have their hosts.
func (w *work) narrow(in *scheduling.Input) {
	if w.reading == nil {
		return
	}
	in.Jobs = slices.DeleteFunc(in.Jobs, isBarred)
	for i := range in.Templates {
		in.Templates[i].Capacity = w.asTaken(in.Templates[i].Name, in.Templates[i].Capacity)
		if d := in.Templates[i].Delivered; d != nil {
			taken := w.asTaken(in.Templates[i].Name, *d)
			in.Templates[i].Delivered = &taken
		}
	}
	for i := range in.Expected {
		in.Expected[i].Capacity = w.asTaken(in.Expected[i].Template, in.Expected[i].Capacity)
	}
	for i := range in.Resources {
		r := &in.Resources[i]
		counted, found := w.reading.Resources[r.Name]
		if !found {
			continue
		}
		// Units of a job that began after it was listed as waiting must not be lacking for that very job.
		r.InUse = min(r.InUse, w.reading.inUseAsListed(r.Name))
		r.KeepBack += counted.Reserved + counted.Elsewhere
		r.Total = min(r.Total, counted.Ceiling)
		if room := max(counted.Ceiling-r.Owned, 0); r.Elastic != nil && r.Elastic.MaxBorrowed > room {
			elastic := *r.Elastic // no job could use more
			elastic.MaxBorrowed = room
			r.Elastic = &elastic
		}
	}
}

// idle answers the idle clock of a resource, after a session that found it so: no more is idle than the backend
// counts as unused, though the session went by what was used when jobs were listed.
func (w *work) idle(resource string, found cluster.IdleClock, total int64) cluster.IdleClock {
	if w.reading == nil {
		return found
	}
	used, _ := w.reading.inUse(resource)
	return found.Follow(min(found.Units(), total-used), w.now)
}

// isBarred tells whether neither more hosts nor more tokens would let a job start, as the backend says.
func isBarred(j cluster.Job) bool {
	return j.State == cluster.JobWaiting && j.Told != nil && j.Told.Barred != ""
}

// waitBarred is why a job waits of which the session hears nothing.
const waitBarred scheduling.Code = "barred"

// barred answers the jobs that wait for nothing that could be provisioned, together that wait for the same.
func (r *reading) barred() (groups []scheduling.Unplaced) {
	if r == nil {
		return nil
	}
	at := map[string]int{}
	for i := range r.View.Jobs {
		j := &r.View.Jobs[i]
		if !isBarred(*j) {
			continue
		}
		g, known := at[j.Told.Barred]
		if !known {
			g = len(groups)
			at[j.Told.Barred] = g
			groups = append(groups, scheduling.Unplaced{
				Code: waitBarred, Why: j.Told.Barred, Change: "what they wait for is the scheduler's: more hosts or tokens would not let them start",
			})
		}
		groups[g].Jobs = append(groups[g].Jobs, j.ID)
		groups[g].Count += max(j.Array, 1)
	}
	return groups
}

// asTaken answers what hosts of a template will have in the backend: the features of its
// placeholder too, such as partitions.
func (w *work) asTaken(template string, c cluster.Capacity) cluster.Capacity {
	held, known := w.reading.Placeholders[template]
	if !known {
		return c
	}
	c.Features = slices.Clone(c.Features)
	for _, f := range held.Features {
		if !c.Has(f) {
			c.Features = append(c.Features, f)
		}
	}
	return c
}

// tell keeps, with the backend's jobs, what the session found of each; what it would
// have started is a guess, which the next readings prove or not.
func (s *Service) tell(r *reading, of found) {
	for _, u := range of.result.Unplaced {
		for _, id := range u.Jobs {
			job := &r.View.Jobs[r.byID[id]]
			job.Why, job.Code, job.Change = u.Why, string(u.Code), u.Change
		}
	}
	for _, start := range of.result.Starts {
		job := &r.View.Jobs[r.byID[start.Job]]
		job.Why, job.Code, job.Change = "fits on "+start.Hosts[0]+" now, and is about to be started", "", ""
	}
	for i := range r.View.Jobs {
		if job := &r.View.Jobs[i]; isBarred(*job) {
			job.Why, job.Code = "is barred: "+job.Told.Barred, string(waitBarred)
		}
	}
	s.guesses.Guess(of.in, of.result)
}
