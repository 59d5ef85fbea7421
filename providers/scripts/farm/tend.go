package farm

import (
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/process"
)

// machine is what hosts are made on: this one, or a test's.
type machine interface {
	// joins tells whether a host needs a join message.
	joins() bool
	// place gives a new host its name and address, where it has them; the others are there.
	place(h *Host, others []Host) error
	newInstance(number int64) (string, error)
	// prepare makes the folder of a host, with its join message where there is one.
	prepare(instance string, join *providers.Join) error
	// start starts the agent of a host, which waits that long first. It only really begins once the record
	// of it is kept.
	start(h *Host, wait time.Duration) (process.Process, error)
	lives(process.Process) bool
	// failed tells whether a host that is down was up before, and is not started again.
	failed(instance string) bool
	// jobs counts what runs on the host beside its agent.
	jobs(instance string, agent process.Process) int64
	// end kills all that runs on the host, and tells whether nothing is left.
	end(instance string, agent process.Process) bool
	// clear removes the folders of all hosts but these.
	clear(instances []string)
	// complain tells the operator what did not succeed and will be tried again.
	complain(h *Host, err error)
}

// untended tells whether there is something to tend.
func (f *farm) untended(now time.Time, m machine) bool {
	return slices.ContainsFunc(f.Hosts, func(h Host) bool { return h.due(now) || h.down(now, m) })
}

// due tells whether the host must be settled.
func (h *Host) due(now time.Time) bool {
	switch h.State {
	case pending:
		return !now.Before(h.Ready)
	case granted:
		return !h.Reclaim.IsZero() && !now.Before(h.Reclaim)
	}
	return h.State == ending
}

// down tells whether the host's agent must be started.
func (h *Host) down(now time.Time, m machine) bool {
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
		switch {
		case h.State == granted && h.due(now):
			h.begin(reclaimed, m)
		case h.down(now, m) && m.failed(h.Instance):
			h.begin(crashed, m)
		}
		if h.State == ending {
			f.finish(h, now, m)
		}
		if h.exists() {
			kept = append(kept, h.Instance)
		}
	}
	m.clear(kept)
	f.Hosts = slices.DeleteFunc(f.Hosts, func(h Host) bool { return h.forgotten(now) })
}

func (h *Host) forgotten(now time.Time) bool {
	switch {
	case h.exists():
		return false
	case h.State == refused:
		return now.Sub(h.Closed) > rememberRefused
	}
	return now.Sub(h.Closed) > rememberEnded
}

// finish kills what runs on the host. What cannot be killed yet is tried again.
func (f *farm) finish(h *Host, now time.Time, m machine) {
	h.Jobs = max(h.Jobs, m.jobs(h.Instance, h.Process))
	if m.end(h.Instance, h.Process) {
		jobs := h.Jobs
		f.close(h, h.End, now)
		f.Unlogged[len(f.Unlogged)-1].Jobs = &jobs
	}
}

// close leaves nothing but the record.
func (f *farm) close(h *Host, end state, now time.Time) {
	*h = Host{
		Cluster: h.Cluster, RequestID: h.RequestID, Template: h.Template, Instance: h.Instance, Name: h.Name,
		Address: h.Address, State: end, Since: h.Since, Closed: now,
	}
	f.log(now, h, string(end))
}

// run grants the host when it is time, and starts its agent when it is down.
func (f *farm) run(h *Host, now time.Time, m machine) {
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
