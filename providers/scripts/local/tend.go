package main

import (
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/providers"
)

// machine is what hosts are made on: this one, or a test's.
type machine interface {
	names() bool
	newInstance(number int64) (string, error)
	// prepare makes the folder of a host, with its join message.
	prepare(instance string, join providers.Join) error
	// start starts the agent of a host, which waits that long first. It only really begins once the record
	// of it is kept.
	start(h *host, wait time.Duration) (process, error)
	lives(process) bool
	// jobs counts what runs on the host beside its agent.
	jobs(instance string, agent process) int64
	// end kills all that runs on the host, and tells whether nothing is left.
	end(instance string, agent process) bool
	// clear removes the folders of all hosts but these.
	clear(instances []string)
	// complain tells the operator what did not succeed and will be tried again.
	complain(h *host, err error)
}

// untended tells whether there is something to tend.
func (f *farm) untended(now time.Time, m machine) bool {
	return slices.ContainsFunc(f.Hosts, func(h host) bool { return h.due(now) || h.down(now, m) })
}

// due tells whether the host must be settled.
func (h *host) due(now time.Time) bool {
	switch h.State {
	case pending:
		return !now.Before(h.Ready)
	case granted:
		return !h.Reclaim.IsZero() && !now.Before(h.Reclaim)
	}
	return h.State == ending
}

// down tells whether the host's agent must be started.
func (h *host) down(now time.Time, m machine) bool {
	return h.State == granted && !h.NeverJoins && now.Sub(h.Started) >= startPause && !m.lives(h.Process)
}

// tend does what is due, and starts the agents that are down.
func (f *farm) tend(now time.Time, m machine) {
	f.settle(now, m)
	for i := range f.Hosts {
		f.run(&f.Hosts[i], now, m)
	}
}

// settle takes what the provider takes, ends what is to end, and forgets what ended long ago.
func (f *farm) settle(now time.Time, m machine) {
	kept := []string{}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if h.State == granted && h.due(now) {
			h.begin(reclaimed, m)
		}
		if h.State == ending {
			f.finish(h, now, m)
		}
		if h.exists() {
			kept = append(kept, h.Instance)
		}
	}
	m.clear(kept)
	f.Hosts = slices.DeleteFunc(f.Hosts, func(h host) bool { return h.forgotten(now) })
}

func (h *host) forgotten(now time.Time) bool {
	switch {
	case h.exists():
		return false
	case h.State == refused:
		return now.Sub(h.Closed) > rememberRefused
	}
	return now.Sub(h.Closed) > rememberEnded
}

// finish kills what runs on the host. What cannot be killed yet is tried again.
func (f *farm) finish(h *host, now time.Time, m machine) {
	h.Jobs = max(h.Jobs, m.jobs(h.Instance, h.Process))
	if m.end(h.Instance, h.Process) {
		jobs := h.Jobs
		f.close(h, h.End, now)
		f.Unlogged[len(f.Unlogged)-1].Jobs = &jobs
	}
}

// close leaves nothing but the record.
func (f *farm) close(h *host, end state, now time.Time) {
	*h = host{
		Cluster: h.Cluster, RequestID: h.RequestID, Template: h.Template, Instance: h.Instance, Name: h.Name,
		State: end, Since: h.Since, Closed: now,
	}
	f.log(now, h, string(end))
}

// run grants the host when it is time, and starts its agent when it is down.
func (f *farm) run(h *host, now time.Time, m machine) {
	if h.State == pending && h.due(now) {
		h.State, h.Since, h.Up, h.Ready = granted, h.Ready, h.Ready.Add(time.Duration(f.Latency)*time.Millisecond), time.Time{}
		f.log(now, h, string(granted))
	}
	if !h.down(now, m) {
		return
	}
	agent, err := m.start(h, max(0, h.Up.Sub(now)))
	if err != nil {
		m.complain(h, err)
		return
	}
	what := "started"
	if !h.Started.IsZero() {
		what = "restarted"
	}
	h.Process, h.Started = agent, now
	f.log(now, h, what)
}

func cutFeature(feature string) (name, value string, attribute bool) {
	return strings.Cut(feature, "=")
}
