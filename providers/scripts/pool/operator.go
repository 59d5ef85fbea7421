package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"xce.internal/elastic/providers"
)

var operatorVerbs = map[string]func(args []string, now time.Time, stdout, stderr io.Writer) error{
	"init":   initPool,
	"show":   showPool,
	"recall": recallUnits,
	"set":    setPool,
}

// flags of one operator's verb; every one of them names the file.
type flags struct {
	*flag.FlagSet
	file string
}

func newFlags(verb string, stderr io.Writer) *flags {
	f := &flags{FlagSet: flag.NewFlagSet("pool "+verb, flag.ContinueOnError)}
	f.SetOutput(stderr)
	f.StringVar(&f.file, "file", "", "the pool file")
	return f
}

func (f *flags) read(args []string) error {
	if err := f.Parse(args); err != nil {
		return errUsage // the flag set has printed it
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag: pool help shows the flags", f.Arg(0))
	}
	if f.file == "" {
		return errors.New("--file is missing: name the pool file")
	}
	return nil
}

// amounts collects a repeatable flag NAME=NUMBER.
type amounts struct {
	numbers map[string]int64
}

func (f *flags) amounts(name, meaning string) *amounts {
	a := &amounts{numbers: map[string]int64{}}
	f.Func(name, meaning+"; may be repeated", a.add)
	return a
}

func (a *amounts) add(text string) error {
	cut := strings.LastIndex(text, "=")
	if cut < 1 || cut > longestName {
		return errors.New("give NAME=NUMBER")
	}
	number, err := strconv.ParseInt(text[cut+1:], 10, 64)
	if err != nil || number < 0 || number > providers.MostUnits {
		return fmt.Errorf("give a whole number from 0 to %d after the =", int64(providers.MostUnits))
	}
	if _, repeated := a.numbers[text[:cut]]; repeated {
		return fmt.Errorf("%s stands there twice", text[:cut])
	}
	a.numbers[text[:cut]] = number
	return nil
}

func initPool(args []string, now time.Time, stdout, stderr io.Writer) error {
	f := newFlags("init", stderr)
	capacities := f.amounts("resource", "a resource and how many units the pool has, vcs=8")
	prices := f.amounts("price", "millionths of a currency unit per unit and hour, vcs=250000")
	holds := f.amounts("hold", "minimum hold in seconds, vcs=300")
	steps := f.amounts("billing-step", "billing step in seconds, vcs=60")
	shares := f.amounts("share", "the most that one cluster may hold, vcs:west=4")
	if err := f.read(args); err != nil {
		return err
	}
	p := &pool{Version: poolVersion, Resources: []resource{}, Grants: []grant{}}
	for name, capacity := range capacities.numbers {
		p.Resources = append(p.Resources, resource{
			Name: name, Capacity: capacity, Price: prices.numbers[name],
			MinimumHold: holds.numbers[name], BillingStep: steps.numbers[name],
		})
	}
	sorted(p.Resources)
	if err := p.checkTerms(prices, holds, steps); err != nil {
		return err
	}
	if err := p.share(shares); err != nil {
		return err
	}
	return p.createIn(f.file, now, stdout)
}

func (p *pool) createIn(path string, now time.Time, stdout io.Writer) error {
	if len(p.Resources) == 0 {
		return errors.New("no resource: name at least one, --resource vcs=8")
	}
	for _, r := range p.Resources {
		p.log(now, &grant{Resource: r.Name}, "capacity", r.Capacity)
	}
	if err := p.check(); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := (poolFile{path}).create(p); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "pool file %s is made\n", path)
	return nil
}

func (p *pool) checkTerms(terms ...*amounts) error {
	for _, term := range terms {
		for name := range term.numbers {
			if p.resource(name) == nil {
				return fmt.Errorf("%s has a price, hold or billing step but no capacity: add --resource %s=N", name, name)
			}
		}
	}
	return nil
}

func (p *pool) share(shares *amounts) error {
	for name, units := range shares.numbers {
		cut := strings.LastIndex(name, ":")
		if cut < 1 || p.resource(name[:cut]) == nil {
			return fmt.Errorf("--share %s=%d: give RESOURCE:CLUSTER=N for a resource that --resource names", name, units)
		}
		r := p.resource(name[:cut])
		if r.Shares == nil {
			r.Shares = map[string]int64{}
		}
		r.Shares[name[cut+1:]] = units
	}
	return nil
}

func recallUnits(args []string, now time.Time, stdout, stderr io.Writer) error {
	f := newFlags("recall", stderr)
	cluster := f.String("cluster", "", "the cluster that holds the grant")
	request := f.String("request", "", "the request id of the grant")
	units := f.Int64("units", 0, "how many units are wanted back")
	if err := f.read(args); err != nil {
		return err
	}
	err := f.change(now, func(p *pool) error { return p.recall(*cluster, *request, *units, now) })
	if err == nil {
		fmt.Fprintf(stdout, "%d units of %s are recalled from cluster %s; describe tells it\n", *units, *request, *cluster)
	}
	return err
}

func setPool(args []string, now time.Time, stdout, stderr io.Writer) error {
	f := newFlags("set", stderr)
	capacities := f.amounts("capacity", "a resource and its new capacity, vcs=12")
	if err := f.read(args); err != nil {
		return err
	}
	if len(capacities.numbers) == 0 {
		return errors.New("nothing to set: give --capacity vcs=12")
	}
	err := f.change(now, func(p *pool) error {
		for name, capacity := range capacities.numbers {
			if err := p.setCapacity(name, capacity, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return showPool([]string{"--file", f.file}, now, stdout, stderr)
}

func (f *flags) change(now time.Time, act func(*pool) error) error {
	file, err := openFile(f.file)
	if err != nil {
		return err
	}
	return file.change(func(p *pool) error {
		p.advance(now)
		return act(p)
	})
}

// overview is what show prints: sums per resource, and the grants that are open.
type overview struct {
	Resources []resourceOverview `json:"resources"`
	Grants    []grant            `json:"grants"`
}

type resourceOverview struct {
	resource
	Lent     int64 `json:"lent"`
	Reserved int64 `json:"reserved"`
	Free     int64 `json:"free"`
	OverLent int64 `json:"over_lent"`
}

func (p *pool) overview() overview {
	view := overview{Grants: []grant{}}
	reserved := map[string]int64{}
	for _, g := range p.Grants {
		if g.State == pending {
			reserved[g.Resource] += g.Units
		}
		if g.Units > 0 {
			view.Grants = append(view.Grants, g)
		}
	}
	for i := range p.Resources {
		r := &p.Resources[i]
		view.Resources = append(view.Resources, resourceOverview{
			resource: *r, Lent: p.out(r.Name, "") - reserved[r.Name], Reserved: reserved[r.Name],
			Free: max(0, p.free(r)), OverLent: max(0, -p.free(r)),
		})
	}
	return view
}

func showPool(args []string, now time.Time, stdout, stderr io.Writer) error {
	f := newFlags("show", stderr)
	format := f.String("o", "table", "table or json")
	if err := f.read(args); err != nil {
		return err
	}
	file, err := openFile(f.file)
	if err != nil {
		return err
	}
	p, err := file.read()
	if err != nil {
		return err
	}
	p.advance(now)
	switch *format {
	case "json":
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(p.overview())
	case "table":
		return p.overview().print(stdout)
	}
	return fmt.Errorf("-o %s: give table or json", *format)
}

func (v overview) print(stdout io.Writer) error {
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESOURCE\tCAPACITY\tLENT\tRESERVED\tFREE\tOVER-LENT")
	for _, r := range v.Resources {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", r.Name, r.Capacity, r.Lent, r.Reserved, r.Free, r.OverLent)
	}
	if len(v.Grants) > 0 {
		fmt.Fprintln(table, "\nCLUSTER\tREQUEST\tRESOURCE\tUNITS\tSTATE\tRECALLED\tSINCE")
	}
	for _, g := range v.Grants {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\t%s\n",
			g.Cluster, g.RequestID, g.Resource, g.Units, g.State, g.Recalled, g.Since.Format(time.RFC3339))
	}
	return table.Flush()
}
