package hostfactory

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// Describe answers what the plug-in could make now, and what it wants back. Being called regularly, it
// also follows requests that nobody asks for any more, and gives back what came of them.
func (a *Adapter) Describe(ctx context.Context) (d providers.Description, outcome providers.Outcome) {
	t, leave, err := a.enter(ctx)
	if err != nil {
		return d, doubt(err)
	}
	defer leave()
	t.housekeep(ctx)
	answer := t.call(ctx, getTemplates, struct{}{})
	listed, answered := readTemplates(answer.docs)
	if answer.run.Err != nil || !answered {
		return d, answer.unknown(join(answer.why(getTemplates), "no templates in the answer"))
	}
	d = providers.Description{
		Contract: providers.ContractVersion, Name: t.spec.Name, Kinds: []providers.Kind{providers.KindHosts},
		Idempotent: true, PartialReturn: true, PollInterval: seconds(t.poll()), Recalls: t.recalls(),
		Templates: t.templates(listed),
	}
	return d, providers.Outcome{Status: providers.StatusOK}
}

// housekeep follows what is open. It begins nothing new once a script's time limit is over, so that a
// survey ends.
func (t *turn) housekeep(ctx context.Context) {
	until := t.deadline()
	t.look(ctx, nil, until)
	t.tidy()
	t.each(func(_ string, r *request) {
		if t.now() < until {
			t.sendBack(ctx, r)
		}
	})
	_ = t.keep() // what was learned now is learned again
	t.askBack(ctx)
	_ = t.keep() // likewise
}

// askBack asks what the plug-in wants back. Some plug-ins end every machine that is missing from the list
// that they are given, so it is the whole list or none.
func (t *turn) askBack(ctx context.Context) {
	list, sure := t.everything()
	if !sure {
		return
	}
	answer := t.call(ctx, getReturnRequests, machinesInput{list})
	all, answered := readReturnRequests(answer.docs)
	if answer.run.Err != nil || !answered {
		return
	}
	t.takeRecalls(all)
}

// everything lists all machines that we have or may have, and tells whether the list is fit to be sent.
func (t *turn) everything() (list []machineInput, sure bool) {
	list, sure = []machineInput{}, true
	doubtful := false
	t.each(func(_ string, r *request) {
		for _, m := range r.Machines {
			if m.exists() {
				list = append(list, inputOf(m))
			}
		}
		doubtful = doubtful || r.unknown() || !r.ended() && !t.overdue(r)
		for _, a := range r.Theirs {
			// A machine that somebody waits for would be missing, if its request could not be looked at.
			sure = sure && (a.Silent == 0 || r.Decided != 0 || r.GivenUp)
		}
	})
	return list, sure && (len(list) > 0 || !doubtful)
}

// takeRecalls notes what the plug-in took back or wants back: of the machines that callers have, and not
// those that go back already. That suddenly most are gone is believed only when it is said twice.
func (t *turn) takeRecalls(all []wanted) {
	var have, named []*machine
	grace := map[*machine]int64{}
	t.each(func(_ string, r *request) {
		for _, m := range r.Machines {
			if m.State != held {
				continue
			}
			have = append(have, m)
			i := slices.IndexFunc(all, func(w wanted) bool { return m.is(w.machineEntry) })
			if i >= 0 {
				named, grace[m] = append(named, m), all[i].grace
			} else if m.Recall != nil && !m.Recall.Confirmed {
				m.Recall = nil
			}
		}
	})
	suspect := len(named) > 2 && 2*len(named) > len(have)
	for _, m := range named {
		switch {
		case m.Recall == nil:
			m.Recall = &recall{Seen: t.now(), Until: t.now().Add(cluster.Duration(grace[m]) * cluster.Second), Confirmed: !suspect}
		case !m.Recall.Confirmed && t.now().Sub(m.Recall.Seen) >= t.poll():
			m.Recall.Confirmed = true
		}
	}
	if suspect {
		t.log.Warn("the plug-in wants most machines back at once", "machines", len(named), "of", len(have))
	}
}

// recalls are what of our requests the plug-in wants back.
func (t *turn) recalls() (all []providers.Recall) {
	t.each(func(id string, r *request) {
		wanted := providers.Recall{RequestID: id, Grace: mostSeconds}
		for _, m := range r.Machines {
			if m.State == held && m.Recall != nil && m.Recall.Confirmed {
				wanted.Units++
				wanted.Grace = min(wanted.Grace, int64(max(m.Recall.Until.Sub(t.now()), 0)/cluster.Second))
			}
		}
		if wanted.Units > 0 {
			all = append(all, wanted)
		}
	})
	return all
}

// templateEntry is a template as a plug-in describes it.
type templateEntry struct {
	id                 string
	most, available    int64
	limited, countable bool // most and available are there
	priority           int64
	attributes         map[string][2]string // type and value
}

// readTemplates reads an answer to getAvailableTemplates; it is only one if some document has the key.
func readTemplates(docs []map[string]any) (all []templateEntry, answered bool) {
	for _, doc := range docs {
		answered = answered || has(doc, "templates")
		for _, object := range elements(field(doc, "templates")) {
			entry := readTemplate(object)
			if entry.id != "" && !slices.ContainsFunc(all, func(o templateEntry) bool { return o.id == entry.id }) {
				all = append(all, entry)
			}
		}
	}
	return all, answered
}

func readTemplate(object map[string]any) templateEntry {
	entry := templateEntry{id: identity(field(object, "templateId", "name")), attributes: map[string][2]string{}}
	entry.most, entry.limited = integer(field(object, "maxNumber"))
	entry.available, entry.countable = integer(field(object, "availableNumber"))
	entry.priority, _ = integer(field(object, "priority"))
	attributes, _ := field(object, "attributes").(map[string]any)
	for name, value := range attributes {
		entry.attributes[name] = readAttribute(value)
	}
	return entry
}

// readAttribute reads ["Type", "value"], and what some write in its place.
func readAttribute(value any) [2]string {
	if pair, ok := value.([]any); ok && len(pair) >= 2 {
		return [2]string{text(pair[0]), text(pair[1])}
	}
	kind := ""
	if _, yes := value.(bool); yes {
		kind = "Boolean"
	}
	return [2]string{kind, text(value)}
}

// attribute answers a whole number of the attributes, 0 where there is none.
func (e templateEntry) attribute(names ...string) (most int64) {
	for name, value := range e.attributes {
		if slices.Contains(names, strings.ToLower(name)) {
			n, _ := integer(value[1])
			most = max(most, n)
		}
	}
	return most
}

// templates answers what the plug-in could make, in our words.
func (t *turn) templates(listed []templateEntry) []providers.Template {
	all, highest := []providers.Template{}, int64(0)
	for _, entry := range listed {
		highest = max(highest, entry.priority)
	}
	for _, entry := range listed {
		template, problem := t.template(entry, highest)
		if problem != "" {
			t.log.Warn("a template is left out", "template", entry.id, "why", problem)
			continue
		}
		all = append(all, template)
	}
	return all
}

var templateName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (t *turn) template(entry templateEntry, highest int64) (providers.Template, string) {
	terms := t.spec.terms(entry.id)
	if !templateName.MatchString(terms.Name) {
		return providers.Template{}, "its id is no name of a template here: give it another name in the configuration"
	}
	template := providers.Template{
		Template: terms.Name, CPUs: terms.CPUs, MemoryMB: terms.MemoryMB, Headroom: t.headroom(entry, terms),
		Price: terms.Price, MinimumHold: seconds(cluster.DurationOf(terms.MinimumHold)),
		BillingStep: seconds(cluster.DurationOf(terms.BillingStep)), Latency: seconds(cluster.DurationOf(terms.Latency)),
		Preference: terms.Preference,
	}
	if template.Preference == 0 && highest > 0 {
		template.Preference = min(highest-entry.priority, 1_000_000)
	}
	if template.CPUs == 0 {
		template.CPUs = entry.cpus(t.spec.Flavour)
	}
	if template.MemoryMB == 0 {
		template.MemoryMB = entry.attribute("mem", "nram")
	}
	template.CPUs, template.MemoryMB = template.CPUs-terms.KeepCPUs, template.MemoryMB-terms.KeepMemoryMB
	if template.CPUs < 1 || template.MemoryMB < 1 {
		return template, fmt.Sprintf("it leaves %d cpus and %d MB for jobs: give its cpus and memory_mb in the configuration", template.CPUs, template.MemoryMB)
	}
	template.Features, template.Attributes = entry.features()
	return template, ""
}

// cpus of a host: Symphony has them as ncpus. LSF has ncpus and ncores, of which sites take one or the
// other for the number of slots; the larger is never more than what there is.
func (e templateEntry) cpus(flavour Flavour) int64 {
	if n := e.attribute("ncpus"); flavour == Symphony && n > 0 {
		return n
	}
	return e.attribute("ncpus", "ncores")
}

// headroom is what the plug-in allows less what we have; what it says it has left is believed as it is.
func (t *turn) headroom(entry templateEntry, terms Terms) int64 {
	taken := t.taken(entry.id)
	most := terms.Most
	if most == 0 && (!entry.limited || entry.most < 0) {
		most = defaultMost
	}
	if entry.limited && entry.most >= 0 && (most == 0 || entry.most < most) {
		most = entry.most
	}
	headroom := most - taken
	if entry.countable && entry.available >= 0 {
		headroom = min(headroom, entry.available)
	}
	return max(headroom, 0)
}

// sizes are attributes that are counted, and so are no features.
var sizes = []string{"ncpus", "ncores", "mem", "nram"}

// features answers the Boolean attributes that are true, and the others with their values, as far as a
// constraint can name them.
func (e templateEntry) features() (features []string, attributes map[string]string) {
	attributes = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(e.attributes)) {
		kind, value := e.attributes[name][0], e.attributes[name][1]
		switch {
		case slices.Contains(sizes, strings.ToLower(name)), !nameable(name, ""):
		case strings.EqualFold(kind, "Boolean"):
			if truth(value) {
				features = append(features, name)
			}
		case value != "" && nameable(name, value):
			attributes[name] = value
		}
	}
	return features, attributes
}

// nameable tells whether a constraint can ask for an attribute with the value.
func nameable(name, value string) bool {
	capacity := cluster.Capacity{Features: []string{name}}
	if value != "" {
		capacity = cluster.Capacity{Attributes: map[string]string{name: value}}
	}
	return len(capacity.Validate("")) == 0
}
