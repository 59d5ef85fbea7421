package hostfactory

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// Flavour is whose conventions a plug-in expects.
type Flavour string

// The flavours: the LSF resource connector, and Symphony's HostFactory.
const (
	LSF      Flavour = "lsf"
	Symphony Flavour = "symphony"
)

// Flavours are all there are.
var Flavours = []Flavour{LSF, Symphony}

// Spec says where the plug-in is, how it is called, and what its contract does not carry. Zero values
// stand for defaults.
type Spec struct {
	Name    string
	Flavour Flavour // default lsf
	Scripts string  // folder with the five scripts
	Conf    string  // folders that the plug-in is told of
	Work    string
	Logs    string
	Top     string // what the plug-in takes for the installation; default the folder above the scripts
	State   string // our own file; it must outlive this machine's reboot

	Environment map[string]string // beside that of the flavours, and over it; may hold secrets
	User        string            // the system user as whom the scripts run; empty = as we do
	Secrets     map[string]string // by name, the file of each; as those of a provider script
	Account     string            // rc_account of the lsf flavour; default "default"

	Terms     Terms   // of templates that are not named, and what named ones leave out
	Templates []Terms // each for the plug-in's template of that id

	TimeLimit    time.Duration // of one call; default 2m
	OutputLimit  int64         // bytes of stdout; default 4 MiB
	PollInterval time.Duration // between two looks at the same request; default 30s
	// Settle is how long a plug-in that says it is done may still be wrong: machines that it calls
	// executing, or has not listed yet, are waited for so long. Default 5m.
	Settle time.Duration
	// Watch is how long a request is watched for late machines after nobody waits for it any more, and how
	// long one of unknown outcome is taken to have a machine. Default 2h.
	Watch time.Duration
	// Hold is how long a template is left alone after an error code, doubled each time. Default 10m.
	Hold time.Duration
}

// Terms are the economics of a template, and its size where the plug-in's own word is not to be taken.
type Terms struct {
	ID           string // the plug-in's templateId
	Name         string // what we call it; default the id
	Price        int64  // millionths of a currency unit per host and hour
	MinimumHold  time.Duration
	BillingStep  time.Duration
	Latency      time.Duration
	Preference   int64 // the lowest first; default from the plug-in's priority
	Most         int64 // hosts at once; default 100 where the plug-in names no limit
	CPUs         int64 // in place of what the plug-in says
	MemoryMB     int64
	KeepCPUs     int64 // what the system of a host keeps for itself
	KeepMemoryMB int64
}

// LongestTimeLimit is the longest that one script may take: describe runs several after each other.
const LongestTimeLimit = 150 * time.Second

const (
	defaultMost = 100
	longestHold = 4 * time.Hour
)

// over answers the terms with what they leave out taken from others.
func (t Terms) over(rest Terms) Terms {
	own := func(n *int64, other int64) {
		if *n == 0 {
			*n = other
		}
	}
	last := func(d *time.Duration, other time.Duration) {
		if *d == 0 {
			*d = other
		}
	}
	own(&t.Price, rest.Price)
	last(&t.MinimumHold, rest.MinimumHold)
	last(&t.BillingStep, rest.BillingStep)
	last(&t.Latency, rest.Latency)
	own(&t.Preference, rest.Preference)
	own(&t.Most, rest.Most)
	own(&t.CPUs, rest.CPUs)
	own(&t.MemoryMB, rest.MemoryMB)
	own(&t.KeepCPUs, rest.KeepCPUs)
	own(&t.KeepMemoryMB, rest.KeepMemoryMB)
	return t
}

// terms answers those of the plug-in's template.
func (s Spec) terms(id string) Terms {
	i := slices.IndexFunc(s.Templates, func(t Terms) bool { return t.ID == id })
	terms := Terms{ID: id}
	if i >= 0 {
		terms = s.Templates[i]
	}
	if terms.Name == "" {
		terms.Name = id
	}
	return terms.over(s.Terms)
}

// theirs answers the plug-in's id of a template that we call so.
func (s Spec) theirs(name string) string {
	i := slices.IndexFunc(s.Templates, func(t Terms) bool { return t.Name == name })
	if i >= 0 {
		return s.Templates[i].ID
	}
	return name
}

func (s *Spec) complete() {
	length := func(d *time.Duration, otherwise time.Duration) {
		if *d == 0 {
			*d = otherwise
		}
	}
	length(&s.TimeLimit, 2*time.Minute)
	length(&s.PollInterval, 30*time.Second)
	length(&s.Settle, 5*time.Minute)
	length(&s.Watch, 2*time.Hour)
	length(&s.Hold, 10*time.Minute)
	if s.OutputLimit == 0 {
		s.OutputLimit = 4 << 20
	}
	if s.Flavour == "" {
		s.Flavour = LSF
	}
	if s.Account == "" {
		s.Account = "default"
	}
	if s.Top == "" {
		s.Top = filepath.Join(s.Scripts, "..")
	}
	s.Environment, s.Secrets, s.Templates = maps.Clone(s.Environment), maps.Clone(s.Secrets), slices.Clone(s.Templates)
}

// check refuses what cannot work.
func (s Spec) check() error {
	if !slices.Contains(Flavours, s.Flavour) {
		return fmt.Errorf("flavour %q: write lsf or symphony", s.Flavour)
	}
	if s.Work == "" {
		return errors.New("no work folder: name the one where the plug-in keeps its records")
	}
	if s.State == "" {
		return errors.New("no state file: name one, outside of the plug-in's folders")
	}
	if err := errors.Join(providers.CheckEnvironment(s.Environment), providers.CheckSecrets(s.Secrets, s.Environment)); err != nil {
		return err
	}
	for _, d := range []time.Duration{s.TimeLimit, s.PollInterval, s.Settle, s.Watch, s.Hold, time.Duration(s.OutputLimit)} {
		if d < 0 {
			return errors.New("a negative length of time or limit: give positive ones, or 0 for the defaults")
		}
	}
	for _, folder := range []string{s.Conf, s.Work, s.Logs} {
		if err := isFolder(folder); err != nil {
			return err
		}
	}
	for _, script := range scripts {
		if _, err := providers.Executable(s.path(script)); err != nil {
			return err
		}
	}
	return nil
}

func isFolder(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("folder: %w: make it, and let us write there", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder: name the one that the plug-in is to use", path)
	}
	return nil
}

func (s Spec) path(script string) string { return filepath.Join(s.Scripts, script+".sh") }

// New checks the plug-in's folders and the state file; it calls nothing. Without a state file it begins
// one, unless the work folder shows that the plug-in has made machines before: then somebody must decide.
func New(spec Spec, log *slog.Logger) (*Adapter, error) {
	spec.complete()
	if err := errors.Join(spec.absolute(), spec.check()); err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Adapter{
		spec: spec, log: log.With("provider", spec.Name), turns: make(chan struct{}, 1), alone: map[string]bool{},
		now: func() cluster.Time { return cluster.TimeOf(time.Now()) },
	}
	a.execute = a.command
	var err error
	if a.user, err = providers.FindAccount(spec.User); err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	for _, script := range scripts {
		if err := a.user.Reach(spec.path(script)); err != nil {
			return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
		}
	}
	if err := a.begin(); err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	return a, nil
}

// begin makes sure that there is a state file.
func (a *Adapter) begin() error {
	_, err := loadState(a.spec.State, a.spec.Name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	used, err := usedBefore(a.spec.Work, a.spec.State, a.spec.State+".next", a.spec.State+".lock", a.inputs())
	if err != nil {
		return err
	}
	if used != "" {
		return a.lost(fmt.Sprintf("%s shows that the plug-in has worked before", used))
	}
	return newState(a.spec.Name).save(a.spec.State)
}

// lost says what to do when the plug-in may have machines of ours that we know nothing of. To ask it what
// it wants back would make some plug-ins end every one of them.
func (a *Adapter) lost(why string) error {
	return fmt.Errorf("there is no state file %s, but %s: restore it from a backup; %s", a.spec.State, why, startOver(a.spec.Name))
}
