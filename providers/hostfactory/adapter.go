package hostfactory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/providers"
)

// Adapter is a plug-in as a provider of hosts. Its calls take turns, also with those of another process
// that has the same state file.
type Adapter struct {
	spec    Spec
	log     *slog.Logger
	now     func() cluster.Time
	execute func(ctx context.Context, script string, input []byte) providers.Execution
	turns   chan struct{}   // whoever could put something in has the turn
	alone   map[string]bool // the plug-in's request ids that are asked for one by one; of whoever has the turn
	secrets providers.Secrets
	user    *providers.Account
	stuck   atomic.Bool // a script runs; left over from an earlier turn only if it cannot be killed
}

// turn is one verb's work: nobody else calls the plug-in or writes the state meanwhile.
type turn struct {
	*Adapter
	*state
}

// enter waits for the turn and reads the state. Leave must be called unless there is an error.
func (a *Adapter) enter(ctx context.Context) (t *turn, leave func(), err error) {
	select {
	case a.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("waiting for another call of this plug-in: %w", context.Cause(ctx))
	}
	defer func() {
		if err != nil {
			<-a.turns
		}
	}()
	if a.stuck.Load() {
		return nil, nil, errors.New("a script of an earlier call cannot be killed: see what its process waits for")
	}
	lock, err := a.lock(ctx)
	if err != nil {
		return nil, nil, err
	}
	s, err := a.recall()
	if err != nil {
		return nil, nil, errors.Join(err, lock.Close())
	}
	return &turn{a, s}, func() {
		_ = lock.Close() // which unlocks
		<-a.turns
	}, nil
}

// recall reads the state, and clears away what a killed process left.
func (a *Adapter) recall() (*state, error) {
	s, err := loadState(a.spec.State, a.spec.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, a.lost("it was there before")
	}
	if err != nil {
		return nil, err
	}
	return s, a.sweep()
}

// lock keeps other processes out until the file is closed.
func (a *Adapter) lock(ctx context.Context) (*os.File, error) {
	file, err := private.Open(a.spec.State+".lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("another process works with %s: %w", a.spec.State, context.Cause(ctx)), file.Close())
		}
	}
}

// keep writes the state. What could not be written is found out again from what was written last.
func (t *turn) keep() error {
	err := t.save(t.spec.State)
	if err != nil {
		t.log.Error("state not kept", "what", err)
	}
	return err
}

func doubt(err error) providers.Outcome {
	return providers.Outcome{Status: providers.StatusUnknown, Message: clip(err.Error())}
}

func refused(reason providers.Reason, after cluster.Duration, message string) providers.Outcome {
	return providers.Outcome{Status: providers.StatusRefused, Reason: reason, RetryAfter: seconds(after), Message: clip(message)}
}

// seconds rounds up, so that nobody comes back too early.
func seconds(d cluster.Duration) int64 {
	return int64((max(d, 0) + cluster.Second - 1) / cluster.Second)
}

func (a *Adapter) poll() cluster.Duration { return cluster.DurationOf(a.spec.PollInterval) }

// Request asks the plug-in for machines. That it is asked is written down before, and it is never asked
// twice for one request.
func (a *Adapter) Request(ctx context.Context, in providers.RequestIn) (providers.RequestOut, providers.Outcome) {
	out, outcome := a.request(ctx, in)
	out.RequestID, out.Status, out.Reason = in.RequestID, outcome.Status, outcome.Reason
	out.Message, out.RetryAfter = outcome.Message, outcome.RetryAfter
	return out, outcome
}

func (a *Adapter) request(ctx context.Context, in providers.RequestIn) (out providers.RequestOut, outcome providers.Outcome) {
	if problem := malformed(in); problem != "" {
		return out, refused(providers.ReasonInvalid, 0, problem)
	}
	t, leave, err := a.enter(ctx)
	if err != nil {
		return out, doubt(err)
	}
	defer leave()
	template := t.spec.theirs(in.Template)
	if known := t.Requests[in.RequestID]; known != nil {
		if known.Template != template || known.Units != in.Units {
			return out, refused(providers.ReasonInvalid, 0, fmt.Sprintf("%s asked for %d of %s before", in.RequestID, known.Units, known.Template))
		}
		return t.stands(known)
	}
	if _, over := t.Closed[in.RequestID]; over {
		return out, refused(providers.ReasonInvalid, 0, "this request was returned or given up")
	}
	if outcome, no := t.notNow(template, in.Units); no {
		return out, outcome
	}
	_, missing := providers.Executable(t.spec.path(requestMachines))
	if err := errors.Join(missing, isFolder(t.spec.Work)); err != nil {
		return out, refused(providers.ReasonCapacity, cluster.Minute, "not asked: "+err.Error())
	}
	r := &request{Template: template, Units: in.Units, Asked: t.now(), Phase: intended}
	if in.Join != nil {
		r.Deadline = cluster.TimeOf(in.Join.Deadline)
	}
	t.Requests[in.RequestID] = r
	if err := t.keep(); err != nil {
		return out, refused(providers.ReasonCapacity, cluster.Minute, "not asked: "+err.Error())
	}
	return out, t.put(ctx, in, r)
}

func malformed(in providers.RequestIn) string {
	switch {
	case in.RequestID == "":
		return "not asked: no request id"
	case in.Template == "":
		return "not asked: a plug-in makes hosts only: name a template"
	case in.Units < 1 || in.Units > 1000:
		return fmt.Sprintf("not asked: %d hosts: ask for 1 to 1000", in.Units)
	case in.Join != nil && (len(in.Join.Token) > 1000 || providers.Hideable(in.Join.Token) != nil):
		return "not asked: a token to join with needs 8 or more letters, digits and . _ ~ + = / -"
	}
	return ""
}

// notNow tells why a template is not asked for now.
func (t *turn) notNow(template string, units int64) (providers.Outcome, bool) {
	if h := t.Holds[template]; t.now() < h.Until {
		return refused(providers.ReasonCapacity, h.Until.Sub(t.now()),
			fmt.Sprintf("the plug-in reported %s for %s: it is left alone until %s", h.Code, template, h.Until.Stamp())), true
	}
	if most := t.spec.terms(template).Most; most > 0 && t.taken(template)+units > most {
		return refused(providers.ReasonQuota, t.poll(), fmt.Sprintf("%d of %s are there or coming, and the configuration allows %d", t.taken(template), template, most)), true
	}
	return providers.Outcome{}, false
}

// put puts a request to the plug-in, now that the intent is kept. It goes on when the caller goes away: to
// break it off would only leave a doubt.
func (t *turn) put(ctx context.Context, in providers.RequestIn, r *request) providers.Outcome {
	if in.Join != nil {
		defer t.secrets.Add(in.Join.Token)()
	}
	answer := t.call(context.WithoutCancel(ctx), requestMachines, t.requestInput(r.Template, in))
	words := messages(answer.docs)
	for _, id := range requestIDs(answer.docs) {
		r.Phase = accepted
		r.Theirs = append(r.Theirs, &asked{ID: id})
		t.Polled[id] = t.now()
	}
	if r.unknown() && answer.run.Err == nil && answer.run.Exit != 0 && words != "" {
		r.Phase, r.Decided, r.Reason, r.Message = declined, t.now(), providers.ReasonCapacity, clip(words)
	}
	if code := codeIn(words); code != "" && answer.run.Err == nil {
		t.hold(r, code)
	}
	if err := t.keep(); err != nil {
		return doubt(fmt.Errorf("the plug-in answered (request id %v), but that cannot be kept: %w", requestIDs(answer.docs), err))
	}
	_, outcome := t.stands(r)
	switch outcome.Status {
	case providers.StatusUnknown:
		return answer.unknown(join(answer.why(requestMachines), outcome.Message))
	case providers.StatusRefused:
		outcome.Text = clip(string(answer.run.Stdout))
	case providers.StatusPending:
		outcome.Message = clip(words)
	}
	return outcome
}

func join(first, second string) string {
	if first == "" {
		return second
	}
	return first + "; " + second
}

// stands answers a request with how it stands.
func (t *turn) stands(r *request) (out providers.RequestOut, outcome providers.Outcome) {
	for _, m := range r.Machines {
		if m.granted() {
			out.Instances = append(out.Instances, m.instance())
		}
	}
	out.Granted = int64(len(out.Instances))
	switch {
	case r.GivenUp && out.Granted == 0:
		outcome = refused(providers.ReasonInvalid, 0, "this request was given up")
	case r.unknown():
		outcome = providers.Outcome{Status: providers.StatusUnknown, Message: inDoubt}
	case r.Decided == 0:
		outcome = providers.Outcome{Status: providers.StatusPending, RetryAfter: seconds(t.poll()), Message: r.Message}
	case out.Granted == 0:
		outcome = refused(r.Reason, t.pause(r), r.Message)
	case out.Granted < r.Units:
		outcome = providers.Outcome{Status: providers.StatusPartial, Message: r.Message}
	default:
		outcome = providers.Outcome{Status: providers.StatusOK}
	}
	if outcome.Status != providers.StatusOK && outcome.Status != providers.StatusPartial {
		out.Granted, out.Instances = 0, nil
	}
	return out, outcome
}

const inDoubt = "nobody can say whether the plug-in made a machine for this request, so it is not asked again: give it up, and look for one by hand"

// pause is how long a template should not be asked for after a refusal.
func (t *turn) pause(r *request) cluster.Duration {
	return max(t.poll(), t.Holds[r.Template].Until.Sub(t.now()))
}

// Status asks the plug-in how requests stand, where it has not been asked within the poll interval.
func (a *Adapter) Status(ctx context.Context, in providers.StatusIn) (out providers.StatusOut, outcome providers.Outcome) {
	t, leave, err := a.enter(ctx)
	if err != nil {
		return out, doubt(err)
	}
	defer leave()
	t.look(ctx, in.RequestIDs, t.now())
	if err := t.keep(); err != nil {
		return out, doubt(err)
	}
	for _, id := range in.RequestIDs {
		out.Requests = append(out.Requests, t.standing(id))
	}
	return out, providers.Outcome{Status: providers.StatusOK}
}

// standing answers how one request stands, as status says it.
func (t *turn) standing(id string) providers.RequestState {
	r := t.Requests[id]
	if _, over := t.Closed[id]; over {
		return providers.RequestState{RequestID: id, Status: providers.StateRefused, Reason: providers.ReasonInvalid, Message: "this request was returned or given up"}
	}
	if r == nil {
		return providers.RequestState{RequestID: id, Status: providers.StateUnknown}
	}
	out, outcome := t.stands(r)
	state := providers.RequestState{
		RequestID: id, Granted: out.Granted, Instances: out.Instances,
		Reason: outcome.Reason, Message: outcome.Message, RetryAfter: outcome.RetryAfter,
	}
	switch outcome.Status {
	case providers.StatusOK, providers.StatusPartial:
		state.Status = providers.StateGranted
	case providers.StatusPending:
		state.Status = providers.StatePending
	case providers.StatusRefused:
		state.Status = providers.StateRefused
	default:
		state.Status = providers.StateUnknown
	}
	return state
}

// List answers the machines that callers have, from our records: a plug-in knows nothing of our requests.
func (a *Adapter) List(ctx context.Context) (out providers.ListOut, outcome providers.Outcome) {
	t, leave, err := a.enter(ctx)
	if err != nil {
		return out, doubt(err)
	}
	defer leave()
	out.Grants = []providers.Grant{}
	t.each(func(id string, r *request) {
		grant := providers.Grant{RequestID: id, Template: t.spec.terms(r.Template).Name, Since: r.Decided.Std()}
		for _, m := range r.Machines {
			if m.granted() && m.exists() {
				grant.Instances = append(grant.Instances, m.instance())
			}
		}
		if grant.Units = int64(len(grant.Instances)); grant.Units > 0 {
			out.Grants = append(out.Grants, grant)
		}
	})
	return out, providers.Outcome{Status: providers.StatusOK}
}

// Observe is refused: a plug-in counts no licences.
func (a *Adapter) Observe(context.Context) (providers.ObserveOut, providers.Outcome) {
	return providers.ObserveOut{}, refused(providers.ReasonInvalid, 0, "a host plug-in counts no licences")
}

// taken is how many machines of a template we have, or may have.
func (s *state) taken(template string) (n int64) {
	for _, r := range s.Requests {
		if r.Template == template {
			n += r.taken()
		}
	}
	return n
}

// taken counts what is there, and what may come still.
func (r *request) taken() int64 {
	there := r.count((*machine).exists)
	if r.unknown() || r.Decided == 0 && !r.ended() {
		return max(there, r.Units)
	}
	return there
}

// hold leaves a template alone after an error code, longer each time. One request does so once, and what
// fails while it is held adds nothing.
func (t *turn) hold(r *request, code string) {
	if r.Held {
		return
	}
	r.Held = true
	h := t.Holds[r.Template]
	if t.now() < h.Until {
		return
	}
	length := min(cluster.DurationOf(t.spec.Hold)<<min(h.Times, 10), cluster.DurationOf(longestHold))
	t.Holds[r.Template] = hold{Until: t.now().Add(length), Times: h.Times + 1, Code: code}
	t.log.Warn("template on hold", "template", r.Template, "code", code, "until", t.Holds[r.Template].Until)
}

func (a *Adapter) deadline() cluster.Time {
	return a.now().Add(cluster.DurationOf(a.spec.TimeLimit))
}

// live is a machine of another request that may be running and is the same as an entry.
func (s *state) live(entry machineEntry, except *request) bool {
	for _, r := range s.Requests {
		if r != except && slices.ContainsFunc(r.Machines, func(m *machine) bool { return m.exists() && m.is(entry) }) {
			return true
		}
	}
	return false
}
