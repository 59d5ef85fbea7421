package farm

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/statefile"
)

type operate = func(args []string, now time.Time, stdout, stderr io.Writer) error

func (k Kind) operatorVerbs() map[string]operate {
	verbs := map[string]func(*flags, []string, time.Time, io.Writer) error{
		"init": initFarm, "set": setFarm, "show": showFarm, "reclaim": reclaimHost, "crash": crashHost, "stop": stopHosts,
	}
	all := map[string]operate{}
	for name, do := range verbs {
		all[name] = func(args []string, now time.Time, stdout, stderr io.Writer) error {
			return do(k.flags(name, stderr), args, now, stdout)
		}
	}
	return all
}

type flags struct {
	*dialogue.Flags
	kind Kind
}

func (k Kind) flags(verb string, stderr io.Writer) *flags {
	return &flags{dialogue.NewFlags(k.Name, verb, "folder", "the folder of the hosts", stderr), k}
}

// host takes the one argument that is no flag, before or after the flags.
func (f *flags) host(args []string) (string, error) {
	if err := f.Parse(args); err != nil {
		return "", dialogue.ErrUsage
	}
	if f.NArg() == 0 {
		return "", fmt.Errorf("no host: name the id of its instance or request; %s show lists them", f.kind.Name)
	}
	return f.Arg(0), f.Read(f.Args()[1:])
}

// sizes collects a repeatable flag TEMPLATE=CPUS:MB.
func (f *flags) sizes(name, meaning string) map[string]size {
	all := map[string]size{}
	f.Func(name, meaning+"; may be repeated", func(text string) error {
		name, value, _ := strings.Cut(text, "=")
		cpus, memory, _ := strings.Cut(value, ":")
		c, cpusErr := strconv.ParseInt(cpus, 10, 64)
		m, memoryErr := strconv.ParseInt(memory, 10, 64)
		if cpusErr != nil || memoryErr != nil || c < 0 || m < 0 {
			return errors.New("give TEMPLATE=CPUS:MB, as in small=2:4096")
		}
		if _, repeated := all[name]; repeated {
			return fmt.Errorf("%s stands there twice", name)
		}
		all[name] = size{c, m}
		return nil
	})
	return all
}

// words collects a repeatable flag TEMPLATE=WORD; a template may have several.
func (f *flags) words(name, meaning string) map[string][]string {
	all := map[string][]string{}
	f.Func(name, meaning+"; may be repeated", func(text string) error {
		name, word, given := strings.Cut(text, "=")
		if !given || word == "" {
			return errors.New("give TEMPLATE=WORD, as in small=avx512")
		}
		all[name] = append(all[name], word)
		return nil
	})
	return all
}

func initFarm(f *flags, args []string, now time.Time, stdout io.Writer) error {
	sizes := f.sizes("template", "a template, with the cpus and MB of a host, small=2:4096")
	capacities := f.Amounts("capacity", "how many hosts of a template there can be, small=10")
	prices := f.Amounts("price", "millionths of a currency unit per host and hour, small=250000")
	holds := f.Amounts("hold", "minimum hold in seconds, small=60")
	steps := f.Amounts("billing", "billing step in seconds, small=60")
	preferences := f.Amounts("preference", "the lowest first, where all else is equal, small=1")
	countables := f.Amounts("countable", "what hosts have beside cpus and memory, small:gpus=2")
	features := f.words("feature", "a feature or attribute of the hosts, small=avx512 or small=site=z1")
	latency := f.Duration("latency", 0, "how long a host takes to boot")
	if err := f.Read(args); err != nil {
		return err
	}
	made := &farm{Version: farmVersion, Latency: latency.Milliseconds(), Templates: []template{}, Hosts: []Host{}}
	for _, name := range sortedNames(sizes) {
		made.Templates = append(made.Templates, template{
			Name: name, CPUs: sizes[name].CPUs, MemoryMB: sizes[name].MemoryMB, Features: features[name],
			Capacity: capacities[name], Price: prices[name], MinimumHold: holds[name], BillingStep: steps[name],
			Preference: preferences[name],
		})
	}
	err := errors.Join(
		made.know("capacity", capacities), made.know("price", prices), made.know("hold", holds), made.know("billing", steps),
		made.know("preference", preferences), know(made, "feature", features), made.count(countables))
	if err != nil {
		return err
	}
	return made.createIn(f.kind, f.Place, now, stdout)
}

func sortedNames[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }

func (f *farm) know(what string, amounts map[string]int64) error { return know(f, what, amounts) }

// know refuses what is said of a template that is not there.
func know[T any](f *farm, what string, said map[string]T) error {
	for _, name := range sortedNames(said) {
		if f.template(name) == nil {
			return fmt.Errorf("--%s %s: there is no template %s: add --template %s=CPUS:MB, or correct the name", what, name, name, name)
		}
	}
	return nil
}

func (f *farm) count(countables map[string]int64) error {
	for _, name := range sortedNames(countables) {
		of, countable, given := strings.Cut(name, ":")
		t := f.template(of)
		if !given || t == nil {
			return fmt.Errorf("--countable %s=%d: give TEMPLATE:NAME=N for a template that --template names", name, countables[name])
		}
		if t.Countables == nil {
			t.Countables = map[string]int64{}
		}
		t.Countables[countable] = countables[name]
	}
	return nil
}

func (f *farm) createIn(k Kind, folder string, now time.Time, stdout io.Writer) error {
	if len(f.Templates) == 0 {
		return errors.New("no template: name at least one, --template small=2:4096")
	}
	for i := range f.Templates {
		f.logCapacity(now, &f.Templates[i])
	}
	if err := f.Check(); err != nil {
		return err
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := (statefile.File{Path: filepath.Join(folder, k.stateName()), Script: k.Name}).Create(f); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "folder %s is made\n", folder)
	return nil
}

func (f *farm) logCapacity(now time.Time, t *template) {
	capacity := t.Capacity
	f.log(now, &Host{Template: t.Name}, "capacity").Capacity = &capacity
}

func setFarm(f *flags, args []string, now time.Time, stdout io.Writer) error {
	capacities := f.Amounts("capacity", "how many hosts of a template there can be, small=0")
	never := f.Amounts("never-joins", "whether the agents of new hosts are not started, small=1 or small=0")
	joins := f.sizes("joins", "what new hosts really have, small=1:2048")
	refusals := f.words("refuse", "refuse every request with a reason, small=quota; small=no ends it")
	latency := f.Duration("latency", -1, "how long a host takes to boot")
	list := f.String("list", "", "what list answers: good, fail, empty or cut")
	if err := f.Read(args); err != nil {
		return err
	}
	err := f.change(now, func(f *farm, _ machine) error {
		if *latency >= 0 {
			f.Latency = latency.Milliseconds()
		}
		err := errors.Join(f.know("capacity", capacities), f.know("never-joins", never), know(f, "joins", joins), know(f, "refuse", refusals))
		if err != nil {
			return err
		}
		f.misbehave(never, joins)
		for _, name := range sortedNames(capacities) {
			f.template(name).Capacity = capacities[name]
			f.logCapacity(now, f.template(name))
		}
		return errors.Join(f.refuse(refusals), f.listAs(*list))
	})
	if err != nil {
		return err
	}
	return f.show("table", stdout)
}

func (f *farm) misbehave(never map[string]int64, joins map[string]size) {
	for name, on := range never {
		f.template(name).NeverJoins = on > 0
	}
	for name, as := range joins {
		f.template(name).JoinsAs = &as
	}
}

func (f *farm) refuse(refusals map[string][]string) error {
	reasons := []providers.Reason{providers.ReasonCapacity, providers.ReasonQuota, providers.ReasonInvalid, providers.ReasonDenied}
	for _, name := range sortedNames(refusals) {
		reason := providers.Reason(refusals[name][len(refusals[name])-1])
		if reason == "no" {
			reason = ""
		}
		if reason != "" && !slices.Contains(reasons, reason) {
			return fmt.Errorf("--refuse %s=%s: give one of %v, or no", name, reason, reasons)
		}
		f.template(name).Refuse = reason
	}
	return nil
}

func (f *farm) listAs(mode string) error {
	if mode != "" && !slices.Contains(listModes, mode) {
		return fmt.Errorf("--list %s: give one of %v", mode, listModes)
	}
	if mode != "" {
		f.List = mode
	}
	return nil
}

// change lets act change the farm, and settles what is due before and after. It starts nothing.
func (f *flags) change(now time.Time, act func(*farm, machine) error) error {
	file, m, err := f.kind.open(f.Place)
	if err != nil {
		return err
	}
	for _, step := range []func(*farm, machine) error{act, func(*farm, machine) error { return nil }} {
		farm := new(farm)
		err := file.Change(farm, func() error {
			farm.settle(now, m)
			return step(farm, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// existing finds a host that is there, by its instance or request.
func (f *farm) existing(id string) (*Host, error) {
	i := slices.IndexFunc(f.Hosts, func(h Host) bool { return h.State == granted && (h.Instance == id || h.RequestID == id) })
	if i < 0 {
		return nil, fmt.Errorf("there is no host %q: show lists those that are", id)
	}
	return &f.Hosts[i], nil
}

func reclaimHost(f *flags, args []string, now time.Time, stdout io.Writer) error {
	grace := f.Duration("grace", 0, "how long it is left")
	id, err := f.host(args)
	if err != nil {
		return err
	}
	err = f.change(now, func(f *farm, _ machine) error {
		h, err := f.existing(id)
		if err != nil {
			return err
		}
		h.Reclaim = now.Add(*grace)
		f.log(now, h, "recalled")
		return nil
	})
	if err == nil {
		fmt.Fprintf(stdout, "%s is taken back in %s; describe tells it\n", id, *grace)
	}
	return err
}

func crashHost(f *flags, args []string, now time.Time, stdout io.Writer) error {
	id, err := f.host(args)
	if err != nil {
		return err
	}
	err = f.change(now, func(f *farm, m machine) error {
		h, err := f.existing(id)
		if err == nil {
			h.begin(crashed, m)
		}
		return err
	})
	if err == nil {
		fmt.Fprintf(stdout, "%s has crashed\n", id)
	}
	return err
}

func stopHosts(f *flags, args []string, now time.Time, stdout io.Writer) error {
	if err := f.Read(args); err != nil {
		return err
	}
	var hosts int
	err := f.change(now, func(f *farm, m machine) error {
		for i := range f.Hosts {
			h := &f.Hosts[i]
			switch h.State {
			case granted:
				hosts++
				h.begin(stopped, m)
			case pending:
				f.close(h, stopped, now)
			}
		}
		return nil
	})
	if err == nil {
		fmt.Fprintf(stdout, "%d hosts are stopped\n", hosts)
	}
	return err
}

// overview is what show prints: the templates, and the hosts that are there.
type overview struct {
	Templates []templateOverview `json:"templates"`
	Hosts     []Host             `json:"hosts"`
}

type templateOverview struct {
	template
	Headroom int64 `json:"headroom"`
}

func (f *farm) overview() overview {
	view := overview{Hosts: []Host{}}
	for i := range f.Templates {
		view.Templates = append(view.Templates, templateOverview{f.Templates[i], f.headroom(&f.Templates[i])})
	}
	for _, h := range f.Hosts {
		if h.exists() {
			view.Hosts = append(view.Hosts, h)
		}
	}
	return view
}

func showFarm(f *flags, args []string, _ time.Time, stdout io.Writer) error {
	format := f.String("o", "table", "table or json")
	if err := f.Read(args); err != nil {
		return err
	}
	return f.show(*format, stdout)
}

func (f *flags) show(format string, stdout io.Writer) error {
	file, m, err := f.kind.open(f.Place)
	if err != nil {
		return err
	}
	farm := new(farm)
	if err := file.Read(farm); err != nil {
		return err
	}
	view := farm.overview()
	return dialogue.Show(stdout, format, view, func(table io.Writer) error { return view.print(table, m) })
}

func (v overview) print(table io.Writer, m machine) error {
	fmt.Fprintln(table, "TEMPLATE\tCPUS\tMB\tCAPACITY\tHEADROOM")
	for _, t := range v.Templates {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\n", t.Name, t.CPUs, t.MemoryMB, t.Capacity, t.Headroom)
	}
	if len(v.Hosts) > 0 {
		fmt.Fprintln(table, "\nID\tTEMPLATE\tCLUSTER\tREQUEST\tSTATE\tAGENT\tSINCE")
	}
	for _, h := range v.Hosts {
		agent := "down"
		if m.lives(h.Process) {
			agent = strconv.Itoa(h.Process.PID)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Instance, h.Template, h.Cluster, h.RequestID, h.State, agent, h.Since.Format(time.RFC3339))
	}
	return nil
}
