package farm

import (
	"fmt"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/process"
	"xce.internal/elastic/providers/scripts/statefile"
)

const (
	farmVersion = 1

	// What has ended is remembered, so that a late or repeated request never makes a host anew. A refusal
	// comes with every poll of a full farm, so it is forgotten sooner.
	rememberEnded   = 30 * 24 * time.Hour
	rememberRefused = 24 * time.Hour

	retryAfter   = 10 // seconds; what a refusal advises
	pollInterval = 1  // seconds

	// startPause is the least time between two starts of one host's agent.
	startPause = time.Second
)

// state is how a request stands.
type state string

const (
	pending   state = "pending"
	granted   state = "granted"
	ending    state = "ending" // its processes are being killed; End says what it is then
	returned  state = "returned"
	reclaimed state = "reclaimed"
	crashed   state = "crashed"
	stopped   state = "stopped"
	cancelled state = "cancelled" // given back before it was granted
	refused   state = "refused"
)

var states = []state{pending, granted, ending, returned, reclaimed, crashed, stopped, cancelled, refused}

// farm is the content of the state file. Its methods are the rules: functions of the farm, the time, and of
// what the machine answers.
type farm struct {
	Version   int        `json:"version"`
	Calls     int64      `json:"calls,omitempty"`
	Made      int64      `json:"made"` // hosts, ever
	Latency   int64      `json:"latency_ms"`
	List      string     `json:"list,omitempty"` // fail, empty or cut
	Templates []template `json:"templates"`
	Hosts     []Host     `json:"hosts"`
	statefile.Changes[change]
}

// template is a kind of host, with what try-outs make of it.
type template struct {
	Name        string           `json:"name"`
	CPUs        int64            `json:"cpus"`
	MemoryMB    int64            `json:"memory_mb"`
	Countables  map[string]int64 `json:"countables,omitempty"`
	Features    []string         `json:"features,omitempty"` // attributes too, as in site=z1
	Capacity    int64            `json:"capacity"`           // hosts
	Price       int64            `json:"price"`              // millionths of a currency unit per host and hour
	MinimumHold int64            `json:"minimum_hold_s"`
	BillingStep int64            `json:"billing_step_s"`
	Preference  int64            `json:"preference,omitempty"`

	Refuse     providers.Reason `json:"refuse,omitempty"`      // every request, for this reason
	NeverJoins bool             `json:"never_joins,omitempty"` // no agent is started
	JoinsAs    *size            `json:"joins_as,omitempty"`    // what its hosts really have
}

// size is what a host has of cpus and memory.
type size struct {
	CPUs     int64 `json:"cpus"`
	MemoryMB int64 `json:"memory_mb"`
}

// Host is one request of one cluster, from the first word about it until it is forgotten, and the host that
// came of it. Request ids are unique within a cluster only.
type Host struct {
	Cluster   string           `json:"cluster"`
	RequestID string           `json:"request_id"`
	Template  string           `json:"template,omitempty"`
	State     state            `json:"state"`
	End       state            `json:"end,omitempty"`      // what an ending one becomes
	Instance  string           `json:"instance,omitempty"` // names its folder
	Name      string           `json:"name,omitempty"`
	Address   string           `json:"address,omitempty"`
	Reason    providers.Reason `json:"reason,omitempty"`
	Since     time.Time        `json:"since"`
	Ready     time.Time        `json:"ready,omitzero"`   // when a pending one is granted
	Up        time.Time        `json:"up,omitzero"`      // when its agent may start: the latency is over
	Reclaim   time.Time        `json:"reclaim,omitzero"` // when the provider takes it
	Closed    time.Time        `json:"closed,omitzero"`

	Size       size             `json:"size,omitzero"`
	Countables map[string]int64 `json:"countables,omitempty"`
	Features   []string         `json:"features,omitempty"`
	NeverJoins bool             `json:"never_joins,omitempty"`
	Started    time.Time        `json:"started,omitzero"` // its agent, the last time
	Process    process.Process  `json:"process,omitzero"`
	Jobs       int64            `json:"jobs,omitempty"` // processes beside the agent, when its end began
}

// change is one line of the journal.
type change struct {
	Sequence int64  `json:"sequence"`
	At       int64  `json:"at_ms"` // since 1970
	Cluster  string `json:"cluster,omitempty"`
	Request  string `json:"request,omitempty"`
	Template string `json:"template,omitempty"`
	Instance string `json:"instance,omitempty"`
	Change   string `json:"change"`
	Jobs     *int64 `json:"jobs,omitempty"`     // processes beside the agent that were killed with it
	Capacity *int64 `json:"capacity,omitempty"` // of the template, now
}

// Number of the change, as the journal counts.
func (c change) Number() int64 { return c.Sequence }

func (f *farm) log(now time.Time, h *Host, what string) *change {
	f.Sequence++
	f.Unlogged = append(f.Unlogged, change{
		Sequence: f.Sequence, At: now.UnixMilli(), Cluster: h.Cluster, Request: h.RequestID,
		Template: h.Template, Instance: h.Instance, Change: what,
	})
	return &f.Unlogged[len(f.Unlogged)-1]
}

func (f *farm) template(name string) *template {
	i := slices.IndexFunc(f.Templates, func(t template) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &f.Templates[i]
}

func (f *farm) find(cluster, requestID string) *Host {
	i := slices.IndexFunc(f.Hosts, func(h Host) bool { return h.Cluster == cluster && h.RequestID == requestID })
	if i < 0 {
		return nil
	}
	return &f.Hosts[i]
}

// exists tells whether the host takes room.
func (h *Host) exists() bool { return h.State == pending || h.State == granted || h.State == ending }

// has tells whether the cluster has the host: until it is gone, if it gives it back; no longer, if it lost it.
func (h *Host) has() bool { return h.State == granted || h.State == ending && h.End == returned }

func (f *farm) headroom(t *template) int64 {
	left := t.Capacity
	for i := range f.Hosts {
		if h := &f.Hosts[i]; h.Template == t.Name && h.exists() {
			left--
		}
	}
	return max(0, left)
}

// describe answers for one cluster.
func (f *farm) describe(cluster string, now time.Time) providers.Description {
	description := providers.Description{
		Contract: providers.ContractVersion, Kinds: []providers.Kind{providers.KindHosts},
		Idempotent: true, PartialReturn: true, Concurrent: true, PollInterval: pollInterval,
		Templates: []providers.Template{},
	}
	for i := range f.Templates {
		t := &f.Templates[i]
		offer := t.offer()
		offer.Headroom, offer.Latency = f.headroom(t), seconds(time.Duration(f.Latency)*time.Millisecond)
		description.Templates = append(description.Templates, offer)
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if h.Cluster == cluster && h.State == granted && !h.Reclaim.IsZero() {
			description.Recalls = append(description.Recalls, providers.Recall{
				RequestID: h.RequestID, Units: 1, Grace: seconds(h.Reclaim.Sub(now)),
			})
		}
	}
	return description
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((max(0, d) + time.Second - 1) / time.Second) }

func (t *template) offer() providers.Template {
	offer := providers.Template{
		Template: t.Name, CPUs: t.CPUs, MemoryMB: t.MemoryMB, Countables: t.Countables,
		Price: t.Price, MinimumHold: t.MinimumHold, BillingStep: t.BillingStep, Preference: t.Preference,
	}
	for _, feature := range t.Features {
		name, value, attribute := cutFeature(feature)
		if !attribute {
			offer.Features = append(offer.Features, feature)
			continue
		}
		if offer.Attributes == nil {
			offer.Attributes = map[string]string{}
		}
		offer.Attributes[name] = value
	}
	return offer
}

// request makes a host, at once or after the delay. The same request gets the same answer.
func (f *farm) request(cluster string, in providers.RequestIn, now time.Time, delay time.Duration, m machine) (providers.RequestOut, error) {
	if known := f.find(cluster, in.RequestID); known != nil {
		return known.repeated(in, m)
	}
	t := f.template(in.Template)
	switch {
	case in.Resource != "":
		return providers.RequestOut{}, dialogue.Refusef("resource %q is not lent here; describe lists the templates of hosts", in.Resource)
	case t == nil:
		return providers.RequestOut{}, dialogue.Refusef("template %q is not made here; describe lists what is", in.Template)
	case in.Join == nil && m.joins():
		return providers.RequestOut{}, dialogue.Refusef("a host of %s could not join: give a join with the request", in.Template)
	}
	h := Host{Cluster: cluster, RequestID: in.RequestID, Template: t.Name, Since: now}
	if reason := f.whyNot(t); reason != "" {
		h.State, h.Reason, h.Closed = refused, reason, now
		return f.add(now, h, string(refused)).answer(), nil
	}
	if err := f.build(&h, t, now, delay, m); err != nil {
		return providers.RequestOut{}, err
	}
	if err := m.prepare(h.Instance, in.Join); err != nil {
		return providers.RequestOut{}, err
	}
	made := f.add(now, h, "requested")
	f.run(made, now, m)
	return made.answer(), nil
}

// build makes the record of a host; it is granted when the delay is over.
func (f *farm) build(h *Host, t *template, now time.Time, delay time.Duration, m machine) error {
	instance, err := m.newInstance(f.Made + 1)
	if err != nil {
		return err
	}
	f.Made++
	h.State, h.Instance, h.Ready = pending, instance, now.Add(delay)
	h.Size, h.Countables, h.Features, h.NeverJoins = size{t.CPUs, t.MemoryMB}, t.Countables, t.Features, t.NeverJoins
	if t.JoinsAs != nil {
		h.Size = *t.JoinsAs
	}
	return m.place(h, slices.DeleteFunc(slices.Clone(f.Hosts), func(h Host) bool { return !h.exists() }))
}

func (f *farm) whyNot(t *template) providers.Reason {
	switch {
	case t.Refuse != "":
		return t.Refuse
	case f.headroom(t) == 0:
		return providers.ReasonCapacity
	}
	return ""
}

func (f *farm) add(now time.Time, h Host, what string) *Host {
	f.Hosts = append(f.Hosts, h)
	f.log(now, &h, what)
	return &f.Hosts[len(f.Hosts)-1]
}

// repeated answers a request that came before. Its join is the newer one.
func (h *Host) repeated(in providers.RequestIn, m machine) (providers.RequestOut, error) {
	switch {
	case h.State != pending && h.State != granted && h.State != refused:
		return providers.RequestOut{}, dialogue.Refusef("request %s is over, %s: ask under a new id", h.RequestID, h.explain())
	case h.Template != in.Template || in.Units != 1:
		return providers.RequestOut{}, dialogue.Refusef("request %s asked for 1 %s before: ask under a new id", h.RequestID, h.Template)
	case in.Join == nil && m.joins():
		return providers.RequestOut{}, dialogue.Refusef("request %s came with a join before: give one again", h.RequestID)
	}
	if h.State != refused {
		if err := m.prepare(h.Instance, in.Join); err != nil {
			return providers.RequestOut{}, err
		}
	}
	return h.answer(), nil
}

func (h *Host) answer() providers.RequestOut {
	out := providers.RequestOut{RequestID: h.RequestID}
	switch h.State {
	case refused:
		out.Status, out.Reason, out.RetryAfter, out.Message = providers.StatusRefused, h.Reason, retryAfter, h.explain()
	case pending:
		out.Status, out.RetryAfter = providers.StatusPending, 1
	default:
		out.Status, out.Granted, out.Instances = providers.StatusOK, 1, h.instances()
	}
	return out
}

func (h *Host) instances() []providers.Instance {
	return []providers.Instance{{ID: h.Instance, Name: h.Name, Address: h.Address}}
}

func (h *Host) explain() string {
	switch h.State {
	case refused:
		return fmt.Sprintf("no host of %s: %s", h.Template, h.Reason)
	case cancelled:
		return "it was given back before it was granted"
	case ending:
		return "the host is being ended"
	}
	return fmt.Sprintf("the host was %s", h.State)
}

func (f *farm) status(cluster string, in providers.StatusIn) providers.StatusOut {
	out := providers.StatusOut{Requests: make([]providers.RequestState, 0, len(in.RequestIDs))}
	for _, id := range in.RequestIDs {
		request := providers.RequestState{RequestID: id, Status: providers.StateUnknown}
		if h := f.find(cluster, id); h != nil {
			request = h.standing()
		}
		out.Requests = append(out.Requests, request)
	}
	return out
}

func (h *Host) standing() providers.RequestState {
	out := providers.RequestState{RequestID: h.RequestID}
	switch {
	case h.State == pending:
		out.Status, out.RetryAfter = providers.StatePending, 1
	case h.has():
		out.Status, out.Granted, out.Instances = providers.StateGranted, 1, h.instances()
	case h.State == refused:
		out.Status, out.Reason, out.RetryAfter, out.Message = providers.StateRefused, h.Reason, retryAfter, h.explain()
	case h.lost():
		out.Status, out.Reason, out.Message = providers.StateRefused, providers.ReasonCapacity, h.explain()
	default:
		out.Status, out.Reason, out.Message = providers.StateRefused, providers.ReasonInvalid, h.explain()
	}
	return out
}

// lost tells whether the host went without being given back.
func (h *Host) lost() bool {
	was := h.State
	if was == ending {
		was = h.End
	}
	return was == crashed || was == reclaimed || was == stopped
}

// giveBack begins the end of a host; the farm's next tending kills its processes. A host that is to remain
// stays as it is.
func (f *farm) giveBack(cluster string, in providers.ReturnIn, now time.Time, m machine) (providers.ReturnOut, error) {
	h := f.find(cluster, in.RequestID)
	if (h == nil || h.State == pending) && in.Remaining > 0 {
		return providers.ReturnOut{}, dialogue.Refusef("request %s is not granted, so %d cannot remain: remaining 0 cancels it", in.RequestID, in.Remaining)
	}
	out := providers.ReturnOut{RequestID: in.RequestID, Status: providers.StatusOK}
	switch {
	case h == nil:
		f.add(now, Host{Cluster: cluster, RequestID: in.RequestID, State: cancelled, Since: now, Closed: now}, string(cancelled))
	case h.State == pending:
		f.close(h, cancelled, now)
	case h.State == refused && in.Remaining == 0:
		h.State, h.Closed = cancelled, now
		f.log(now, h, string(cancelled))
	case h.has() && in.Remaining > 0:
		out.Remaining = 1
	case h.State == granted:
		h.begin(returned, m)
		out.Status, out.Remaining, out.RetryAfter = providers.StatusPending, 1, 1
	case h.has():
		out.Status, out.Remaining, out.RetryAfter = providers.StatusPending, 1, 1
	}
	return out, nil
}

// begin notes that the host is to end, and what ran on it.
func (h *Host) begin(end state, m machine) {
	h.State, h.End = ending, end
	h.Jobs = max(h.Jobs, m.jobs(h.Instance, h.Process))
}

func (f *farm) list(cluster string) providers.ListOut {
	out := providers.ListOut{Grants: []providers.Grant{}}
	for i := range f.Hosts {
		if h := &f.Hosts[i]; h.Cluster == cluster && h.has() {
			out.Grants = append(out.Grants, providers.Grant{
				RequestID: h.RequestID, Template: h.Template, Units: 1, Instances: h.instances(), Since: h.Since,
			})
		}
	}
	return out
}

// Check finds what no state file may hold.
func (f *farm) Check() error {
	if f.Version != farmVersion {
		return fmt.Errorf("version %d, this program knows version %d", f.Version, farmVersion)
	}
	names := map[string]bool{}
	for i := range f.Templates {
		t := &f.Templates[i]
		if err := t.check(); err != nil {
			return err
		}
		if names[t.Name] {
			return fmt.Errorf("template %q stands there twice", t.Name)
		}
		names[t.Name] = true
	}
	return f.checkHosts(names)
}

func (t *template) check() error {
	values := []int64{t.Capacity, t.Price, t.MinimumHold, t.BillingStep, t.Preference}
	if !cluster.ValidName(t.Name) || slices.Min(values) < 0 || slices.Max(values) > providers.MostUnits {
		return fmt.Errorf("template %q: capacity %d, price %d, minimum hold %d, billing step %d, preference %d: "+
			"a name of letters and digits and numbers from 0 to %d are needed",
			t.Name, t.Capacity, t.Price, t.MinimumHold, t.BillingStep, t.Preference, int64(providers.MostUnits))
	}
	if err := t.offer().Capacity().Validate("").Err(); err != nil {
		return fmt.Errorf("template %q: %w", t.Name, err)
	}
	return nil
}

func (f *farm) checkHosts(templates map[string]bool) error {
	type key struct{ cluster, requestID string }
	seen, instances := map[key]bool{}, map[string]bool{}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		here := key{h.Cluster, h.RequestID}
		switch {
		case seen[here], h.Instance != "" && instances[h.Instance]:
			return fmt.Errorf("request %q of cluster %q or its host %q stands there twice", h.RequestID, h.Cluster, h.Instance)
		case !slices.Contains(states, h.State):
			return fmt.Errorf("request %q: state %q is none that this program knows", h.RequestID, h.State)
		case h.exists() && (!templates[h.Template] || !cluster.ValidName(h.Instance)):
			return fmt.Errorf("request %q: a host %q of template %q cannot be", h.RequestID, h.Instance, h.Template)
		}
		seen[here], instances[h.Instance] = true, true
	}
	return nil
}
