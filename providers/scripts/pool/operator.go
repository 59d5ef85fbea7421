package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"xce.internal/elastic/providers/scripts/dialogue"
)

var operatorVerbs = map[string]func(args []string, now time.Time, stdout, stderr io.Writer) error{
	"init":   initPool,
	"show":   showPool,
	"recall": recallUnits,
	"set":    setPool,
}

type flags struct{ *dialogue.Flags }

func newFlags(verb string, stderr io.Writer) *flags {
	return &flags{dialogue.NewFlags("pool", verb, "file", "the pool file", stderr)}
}

func initPool(args []string, now time.Time, stdout, stderr io.Writer) error {
	f := newFlags("init", stderr)
	capacities := f.Amounts("resource", "a resource and how many units the pool has, vcs=8")
	prices := f.Amounts("price", "millionths of a currency unit per unit and hour, vcs=250000")
	holds := f.Amounts("hold", "minimum hold in seconds, vcs=300")
	steps := f.Amounts("billing-step", "billing step in seconds, vcs=60")
	shares := f.Amounts("share", "the most that one cluster may hold, vcs:west=4")
	if err := f.Read(args); err != nil {
		return err
	}
	p := &pool{Version: poolVersion, Resources: []resource{}, Grants: []grant{}}
	for name, capacity := range capacities {
		p.Resources = append(p.Resources, resource{
			Name: name, Capacity: capacity, Price: prices[name],
			MinimumHold: holds[name], BillingStep: steps[name],
		})
	}
	sorted(p.Resources)
	if err := p.checkTerms(prices, holds, steps); err != nil {
		return err
	}
	if err := p.share(shares); err != nil {
		return err
	}
	return p.createIn(f.Place, now, stdout)
}

func (p *pool) createIn(path string, now time.Time, stdout io.Writer) error {
	if len(p.Resources) == 0 {
		return errors.New("no resource: name at least one, --resource vcs=8")
	}
	for _, r := range p.Resources {
		p.log(now, &grant{Resource: r.Name}, "capacity", r.Capacity)
	}
	if err := p.Check(); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := (poolFile{path}).file().Create(p); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "pool file %s is made\n", path)
	return nil
}

func (p *pool) checkTerms(terms ...map[string]int64) error {
	for _, term := range terms {
		for name := range term {
			if p.resource(name) == nil {
				return fmt.Errorf("%s has a price, hold or billing step but no capacity: add --resource %s=N", name, name)
			}
		}
	}
	return nil
}

func (p *pool) share(shares map[string]int64) error {
	for name, units := range shares {
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
	if err := f.Read(args); err != nil {
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
	capacities := f.Amounts("capacity", "a resource and its new capacity, vcs=12")
	if err := f.Read(args); err != nil {
		return err
	}
	if len(capacities) == 0 {
		return errors.New("nothing to set: give --capacity vcs=12")
	}
	err := f.change(now, func(p *pool) error {
		for name, capacity := range capacities {
			if err := p.setCapacity(name, capacity, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return showPool([]string{"--file", f.Place}, now, stdout, stderr)
}

func (f *flags) change(now time.Time, act func(*pool) error) error {
	file, err := openFile(f.Place)
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
	if err := f.Read(args); err != nil {
		return err
	}
	file, err := openFile(f.Place)
	if err != nil {
		return err
	}
	p, err := file.read()
	if err != nil {
		return err
	}
	p.advance(now)
	return dialogue.Show(stdout, *format, p.overview(), p.overview().print)
}

func (v overview) print(table io.Writer) error {
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
	return nil
}
