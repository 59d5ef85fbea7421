package backend

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// Do is a kind of step.
type Do string

// Steps that bring a scheduler's hosts in line with the rows.
const (
	DoDeclare         Do = "declare"
	DoDrain           Do = "drain"
	DoOpen            Do = "open"
	DoRemove          Do = "remove"
	DoPlaceholder     Do = "placeholder"
	DoDropPlaceholder Do = "drop-placeholder"
)

// Step is one thing to do to the scheduler's hosts.
type Step struct {
	Do   Do
	Host string
	// Machine is what to declare, or what a placeholder stands for.
	Machine Machine
	Why     string
}

// Arrange answers what is to be done so that the scheduler has the hosts that the rows
// of elastic hosts say, and a placeholder for each template. Rows are those that stand
// for something. The same state needs no step.
func Arrange(rows []cluster.ElasticHost, templates []cluster.Template, v View) []Step {
	known := map[string]*Host{}
	for i := range v.Hosts {
		known[v.Hosts[i].Name] = &v.Hosts[i]
	}
	var steps []Step
	heirs := heirs(rows)
	waits := map[string]bool{} // since another still has its address
	for name, heir := range heirs {
		waits[heir] = waits[heir] || known[name] != nil
	}
	for _, row := range rows {
		h := known[row.Name]
		heir, moved := heirs[row.Name]
		switch step, needed := arrangeHost(row, h); {
		case h == nil && (moved || waits[row.Name]): // not before the other is out
		case moved && row.State != cluster.HostLeaving:
			if !h.Drained {
				steps = append(steps, Step{Do: DoDrain, Host: row.Name, Why: "its address is now that of " + heir})
			}
		case needed:
			steps = append(steps, step)
		}
	}
	return append(steps, placeholders(templates, v)...)
}

// heirs answers, by the names of hosts whose address was given to a later one, the name of that. The machine at the
// address is the later one's, and would be sent what is for both, the end of a job too: so one of them is to be known.
func heirs(rows []cluster.ElasticHost) map[string]string {
	at, heirs := map[string]cluster.ElasticHost{}, map[string]string{}
	for _, row := range rows {
		if row.Address == "" {
			continue
		}
		other, taken := at[row.Address]
		switch {
		case taken && row.Intended < other.Intended:
			heirs[row.Name] = other.Name
			continue
		case taken:
			heirs[other.Name] = row.Name
		}
		at[row.Address] = row
	}
	return heirs
}

// arrangeHost answers the next step for one host; h is nil where the scheduler knows none of its name.
func arrangeHost(row cluster.ElasticHost, h *Host) (Step, bool) {
	switch row.State {
	case cluster.HostExpected, cluster.HostJoined:
		switch {
		case h == nil, row.State == cluster.HostExpected && h.State == HostAwaited && !h.Drained:
			return Step{Do: DoDeclare, Host: row.Name, Machine: machineOf(row), Why: row.Why}, true
		case row.State == cluster.HostJoined && (h.Drained && h.State == HostClosed || h.PutOff):
			return Step{Do: DoOpen, Host: row.Name, Why: row.Why}, true
		}
	case cluster.HostDraining:
		if h != nil && !h.Drained {
			return Step{Do: DoDrain, Host: row.Name, Why: row.Drain.Why}, true
		}
	case cluster.HostLeaving:
		if h != nil && (h.Removable || h.State != HostAwaited) {
			return Step{Do: DoRemove, Host: row.Name, Why: row.Why}, true
		}
	}
	return Step{}, false
}

func machineOf(row cluster.ElasticHost) Machine {
	return Machine{Name: row.Name, Address: row.Address, Template: row.Template, Capacity: row.Capacity}
}

// placeholders answers what is to be done so that each template has one like it.
func placeholders(templates []cluster.Template, v View) (steps []Step) {
	there := map[string]bool{}
	for _, t := range templates {
		there[t.Name] = true
		held, found := v.Placeholders[t.Name]
		if !found || !standsFor(held, t) {
			m := Machine{Name: t.Name, Template: t.Name, Capacity: t.Capacity}
			steps = append(steps, Step{Do: DoPlaceholder, Machine: m, Why: t.Provider + " can make " + t.Name})
		}
	}
	for name := range v.Placeholders {
		if !there[name] {
			steps = append(steps, Step{Do: DoDropPlaceholder, Machine: Machine{Template: name}, Why: "no provider makes " + name})
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Compare(a.Machine.Template, b.Machine.Template) })
	return steps
}

// standsFor tells whether a placeholder lets every job wait that a host of the template could run.
func standsFor(h Host, t cluster.Template) bool {
	if !h.Covers(t.Capacity) {
		return false
	}
	return !slices.ContainsFunc(t.FeatureNames(), func(f string) bool { return !h.Has(f) })
}
