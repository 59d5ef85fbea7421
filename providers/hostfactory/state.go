package hostfactory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/providers"
)

// stateVersion is the version of the state file's layout.
const stateVersion = 1

// state is what the adapter remembers, since plug-ins know nothing of our request ids. Secrets are not in it.
type state struct {
	Version  int                     `json:"version"`
	Provider string                  `json:"provider"`
	Requests map[string]*request     `json:"requests,omitempty"` // by our id; those that may still have a machine
	Closed   map[string]closed       `json:"closed,omitempty"`   // by our id; those that are over
	Holds    map[string]hold         `json:"holds,omitempty"`    // by the plug-in's template
	Polled   map[string]cluster.Time `json:"polled,omitempty"`   // by the plug-in's request id

	written []byte // what stands in the file
}

// request is one request of ours, from before it is put to the plug-in until none of its machines is left.
type request struct {
	Template string       `json:"template"` // the plug-in's
	Units    int64        `json:"units"`
	Asked    cluster.Time `json:"asked"` // when the intent was written down
	Phase    phase        `json:"phase"`
	// Deadline is until when a host of it can join; a machine that comes later is of no use.
	Deadline cluster.Time `json:"deadline,omitempty"`
	Theirs   []*asked     `json:"theirs,omitempty"`
	Machines []*machine   `json:"machines,omitempty"` // in the order in which they came
	// GivenUp: the caller wants nothing of it any more, so a machine that comes goes back at once.
	GivenUp bool `json:"given_up,omitempty"`
	// Decided is when the caller could be told what the request gets; a machine that comes later goes back.
	Decided cluster.Time     `json:"decided,omitempty"`
	Reason  providers.Reason `json:"reason,omitempty"`
	Message string           `json:"message,omitempty"`
	Held    bool             `json:"held,omitempty"` // its error code has put the template on hold already
}

// phase is how far a request has come.
type phase string

const (
	// intended: it was going to be put to the plug-in. Once nobody is doing that any more, whether the
	// plug-in has got it is unknown.
	intended phase = "intended"
	// accepted: the plug-in gave it an id, so it can be followed.
	accepted phase = "accepted"
	// declined: the plug-in said that it did not take it.
	declined phase = "declined"
)

// asked is a request as the plug-in knows it.
type asked struct {
	ID string `json:"id"`
	// Ended is since when the plug-in says that it has ended, Says how often in a row.
	Ended     cluster.Time `json:"ended,omitempty"`
	Says      int          `json:"says,omitempty"`
	WithError bool         `json:"with_error,omitempty"`
	// Silent counts the polls in a row that told nothing of it.
	Silent int `json:"silent,omitempty"`
}

// machine is one machine of a request.
type machine struct {
	ID       string       `json:"id,omitempty"`
	Name     string       `json:"name,omitempty"`
	Former   []string     `json:"former,omitempty"`   // names that it had before
	Instance string       `json:"instance,omitempty"` // the id under which it was granted
	From     string       `json:"from"`               // the plug-in's request
	Result   string       `json:"result"`
	Launched cluster.Time `json:"launched,omitempty"`
	Seen     cluster.Time `json:"seen"`
	State    machineState `json:"state"`
	Message  string       `json:"message,omitempty"`
	Back     *back        `json:"back,omitempty"`
	Recall   *recall      `json:"recall,omitempty"`
}

// machineState is how a machine stands with us.
type machineState string

const (
	coming  machineState = "coming"  // it is being made
	held    machineState = "held"    // it is granted
	leaving machineState = "leaving" // it goes back; not confirmed yet
	failed  machineState = "failed"  // the plug-in says that it did not become one
	gone    machineState = "gone"    // confirmed not to run any more
)

// back is how far the return of a machine has come.
type back struct {
	ID      string       `json:"id,omitempty"` // the plug-in's id of the last return
	Asked   cluster.Time `json:"asked,omitempty"`
	Tries   int          `json:"tries,omitempty"`
	Ended   bool         `json:"ended,omitempty"`   // the last return will say nothing more
	Done    int          `json:"done,omitempty"`    // returns of which the plug-in said in so many words that they are done
	Absent  int          `json:"absent,omitempty"`  // answers in a row in which the machine no longer was
	Shown   int          `json:"shown,omitempty"`   // answers since its end in which the machine still was
	Unshown int          `json:"unshown,omitempty"` // polls in a row that told nothing of its request
	Message string       `json:"message,omitempty"`
}

// recall is that the provider wants a machine back.
type recall struct {
	Seen      cluster.Time `json:"seen"`
	Until     cluster.Time `json:"until,omitempty"` // end of the grace
	Confirmed bool         `json:"confirmed"`
}

// closed is what is kept of a request that is over, so that a late repetition is refused.
type closed struct {
	At     cluster.Time `json:"at"`
	Theirs []string     `json:"theirs,omitempty"`
}

// hold is a template that is left alone for a while.
type hold struct {
	Until cluster.Time `json:"until"`
	Times int          `json:"times"` // in a row
	Code  string       `json:"code"`
}

// remember is how long ids of closed requests are kept.
const remember = 31 * 24 * cluster.Hour

func newState(provider string) *state {
	return &state{
		Version: stateVersion, Provider: provider, Requests: map[string]*request{}, Closed: map[string]closed{},
		Holds: map[string]hold{}, Polled: map[string]cluster.Time{},
	}
}

// loadState reads the state file. That it is not there is fs.ErrNotExist.
func loadState(path, provider string) (*state, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s := newState("")
	s.written = data
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("state file %s is damaged (%w): restore it from a backup; %s", path, err, startOver(provider))
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("state file %s has layout version %d, this program knows %d: run the version that wrote it", path, s.Version, stateVersion)
	}
	if s.Provider != provider {
		return nil, fmt.Errorf("state file %s belongs to provider %q, not %q: give each provider a state file of its own", path, s.Provider, provider)
	}
	return s, nil
}

// startOver says how to begin without records; it must be somebody's decision.
func startOver(provider string) string {
	return fmt.Sprintf(`or, once you have given back every machine that the plug-in still has of us, write {"version":%d,"provider":%q} to it`, stateVersion, provider)
}

// save replaces the state file, so that whenever we are killed it is the old or the new one.
func (s *state) save(path string) error {
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	if data = append(data, '\n'); bytes.Equal(data, s.written) {
		return nil
	}
	if err := replace(path, data); err != nil {
		return fmt.Errorf("write state file %s: %w: make room, or let us write there", path, err)
	}
	s.written = data
	return nil
}

func replace(path string, data []byte) error {
	next, err := private.Open(path+".next", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	if err = errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	if err := os.Rename(next.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// usedBefore names what in the work folder shows that the plug-in has worked there, empty where nothing does.
func usedBefore(folder string, ours ...string) (string, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("work folder: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if !slices.Contains(ours, path) && entry.Name() != "lost+found" {
			return path, nil
		}
	}
	return "", nil
}

// ids are our ids of the open requests, in the order in which they were asked.
func (s *state) ids() []string {
	return slices.SortedFunc(maps.Keys(s.Requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Requests[a].Asked, s.Requests[b].Asked), strings.Compare(a, b))
	})
}

// each goes through all open requests in order.
func (s *state) each(do func(id string, r *request)) {
	for _, id := range s.ids() {
		do(id, s.Requests[id])
	}
}

// close lets a request go, and keeps of it what a late repetition is refused by.
func (s *state) close(id string, now cluster.Time) {
	done := closed{At: now}
	if r := s.Requests[id]; r != nil {
		for _, a := range r.Theirs {
			done.Theirs = append(done.Theirs, a.ID)
			delete(s.Polled, a.ID)
		}
		for _, m := range r.Machines {
			if m.Back != nil {
				delete(s.Polled, m.Back.ID)
			}
		}
	}
	delete(s.Requests, id)
	s.Closed[id] = done
}

// forget drops what is too old to matter.
func (s *state) forget(now cluster.Time) {
	maps.DeleteFunc(s.Closed, func(_ string, c closed) bool { return now.Sub(c.At) > remember })
	maps.DeleteFunc(s.Polled, func(_ string, at cluster.Time) bool { return now.Sub(at) > 24*cluster.Hour })
	maps.DeleteFunc(s.Holds, func(_ string, h hold) bool { return now.Sub(h.Until) > remember })
}

// is tells whether an entry is of this machine: by id where both have one, or else by a name.
func (m *machine) is(e machineEntry) bool {
	if m.ID != "" && e.id != "" {
		return m.ID == e.id
	}
	return e.name != "" && (e.name == m.Name || slices.Contains(m.Former, e.name))
}

// exists tells whether the machine may be running.
func (m *machine) exists() bool { return m.State == coming || m.State == held || m.State == leaving }

// granted tells whether the caller has or had the machine.
func (m *machine) granted() bool { return m.Instance != "" }

func (m *machine) instance() providers.Instance {
	return providers.Instance{ID: m.Instance, Name: m.Name}
}

func (r *request) count(is func(*machine) bool) (n int64) {
	for _, m := range r.Machines {
		if is(m) {
			n++
		}
	}
	return n
}

// unknown tells whether nobody can say if the plug-in has got the request.
func (r *request) unknown() bool { return r.Phase == intended }

// ended tells whether the plug-in has said of all its ids that they are over.
func (r *request) ended() bool {
	return r.Phase == declined || r.Phase == accepted && !slices.ContainsFunc(r.Theirs, func(a *asked) bool { return a.Ended == 0 })
}
