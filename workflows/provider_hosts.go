package workflows

import (
	"fmt"
	"slices"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/policy"
)

// ProviderHosts is what a provider's story remembers of its hosts.
type ProviderHosts struct {
	// Templates are the last ones published.
	Templates []cluster.Template `json:"templates,omitempty"`
	// Numbers counts the hosts of each template, so that ids never repeat, and
	// Begun is when the last of them was started.
	Numbers map[string]int64        `json:"numbers,omitempty"`
	Begun   map[string]cluster.Time `json:"begun,omitempty"`
	// Vanished counts the started hosts that never showed in the books.
	Vanished map[string]int64 `json:"vanished,omitempty"`
	// Orphans are machines that the last list had and the books have not.
	Orphans map[string]Stray `json:"orphans,omitempty"`
	// OrphanGrace is how long an orphan is left alone before it is given back.
	OrphanGrace cluster.Duration `json:"orphan_grace,omitempty"`
	// Believed is the last inventory that was believed, and Doubt why the last one
	// was not.
	Believed policy.Inventory `json:"believed,omitzero"`
	Doubt    string           `json:"doubt,omitempty"`
	// Believe tells that an operator takes the next list at its word.
	Believe bool `json:"believe,omitempty"`
}

// provision asks for the hosts that the policy decides upon, until it wants no more.
func (p *Provider) provision(env ProviderEnv, view policy.HostView) {
	h := &p.Hosts
	for i, d := range view.Demand {
		view.Demand[i].Units -= h.underway(d.Template, view.Made[d.Template], env.Now())
	}
	for plans := policy.Provision(view, env.Now()); len(plans) > 0; plans = policy.Provision(view, env.Now()) {
		for _, plan := range plans {
			env.StartHosts(h.begin(p.Name, plan, view.Made[plan.Template.Name], env.Now()))
		}
		view = view.Without(plans)
	}
}

// underway answers how many hosts of a template were started and are not in the
// books yet. Those that do not show within a time are counted out, until they do.
func (h *ProviderHosts) underway(template string, made int64, now cluster.Time) int64 {
	absent := max(h.Numbers[template]-made, 0)
	vanished := min(h.Vanished[template], absent)
	if now.Sub(h.Begun[template]) > startingFor {
		vanished = absent
	}
	if vanished != h.Vanished[template] {
		if h.Vanished == nil {
			h.Vanished = map[string]int64{}
		}
		h.Vanished[template] = vanished
	}
	return absent - vanished
}

// begin numbers the hosts of a plan.
func (h *ProviderHosts) begin(provider string, plan policy.HostPlan, made int64, now cluster.Time) (requests []cluster.HostRequest) {
	if h.Numbers == nil {
		h.Numbers, h.Begun = map[string]int64{}, map[string]cluster.Time{}
	}
	template := plan.Template.Name
	h.Numbers[template] = max(h.Numbers[template], made)
	h.Begun[template] = now
	for range plan.Hosts {
		h.Numbers[template]++
		requests = append(requests, cluster.HostRequest{
			ID: HostID(template, h.Numbers[template]), Provider: provider, Template: template,
			Jobs: plan.Demand.Jobs, Reason: plan.Demand.Reason, PollInterval: plan.Template.PollInterval,
		})
	}
	return requests
}

// silence has nothing be expected of the templates.
func (h *ProviderHosts) silence() {
	h.Templates = slices.Clone(h.Templates)
	for i := range h.Templates {
		h.Templates[i].Headroom = 0
	}
}

// reclaim tells hosts that their provider takes them.
func (p *Provider) reclaim(env ProviderEnv, taken []activities.Reclaim) {
	for _, r := range taken {
		env.TellHost(r.Host, Message{Reclaimed: &Reclaimed{By: p.LastSurvey.Add(r.Grace)}})
	}
}

// takeStock compares what machines the provider lists with the books. A host
// that is missing, or is another machine, is told to look for itself; what no
// open host stands for is an orphan. A list that is hard to believe is not acted
// upon, unless an operator takes it at its word.
func (p *Provider) takeStock(env ProviderEnv, inv activities.Inventory) {
	p.Hosts.Doubt = inv.Doubt(p.Hosts.Believed)
	if p.Hosts.Doubt != "" && !p.Hosts.Believe {
		p.Trouble = fmt.Sprintf("list: %s; not believed, and hosts are not compared with it; if it is true, say so with `xce-elastic provider believe %s --yes`", p.Hosts.Doubt, p.Name)
		return
	}
	p.Hosts.Believed, p.Hosts.Believe, p.Hosts.Doubt = inv.Inventory, false, ""
	for _, id := range inv.MissingHosts {
		env.TellHost(id, Message{Check: true})
	}
	for _, id := range inv.Swapped {
		env.TellHost(id, Message{Check: true})
	}
	p.orphans(env, inv.OrphanHosts)
}

// orphans gives back, after a grace, machines that no open host stands for, seen
// at least twice. They are reported when they are seen the second time.
func (p *Provider) orphans(env ProviderEnv, found []activities.Orphan) {
	now, next := env.Now(), map[string]Stray{}
	for _, o := range found {
		s, known := p.Hosts.Orphans[o.Request]
		if !known {
			s.Since = now
		}
		if s.Seen++; s.Seen > 1 {
			p.settleOrphan(env, o, &s)
		}
		next[o.Request] = s
	}
	p.Hosts.Orphans = next
}

func (p *Provider) settleOrphan(env ProviderEnv, o activities.Orphan, s *Stray) {
	left := s.Since.Add(p.Hosts.OrphanGrace).Sub(env.Now())
	report := func(what string) {
		env.ReportStray(api.Stray{Provider: p.Name, Request: o.Request, Resource: o.Template, Units: int64(len(o.Instances)), What: what})
	}
	if left > 0 {
		if !s.Reported {
			report(fmt.Sprintf("%s lists a host of %s that no open host stands for; it goes back in %s unless it is gone by then", p.Name, o.Template, left))
		}
		s.Reported = true
		return
	}
	back := env.Return(activities.GiveBack{
		Ask:       activities.Ask{Provider: p.Name, Request: o.Request, Template: o.Template, Units: int64(len(o.Instances)), Weight: 1},
		Instances: o.Instances,
	})
	report(fmt.Sprintf("%s listed a host of %s that no open host stands for; given back: %s", p.Name, o.Template, words(back.Outcome)))
	s.Since = env.Now() // and once more after as long, should it still be there
}

// details tells people how the provider's hosts stand.
func (h *ProviderHosts) details() (lines []string) {
	if len(h.Templates) > 0 {
		lines = append(lines, "", "| template | headroom | price | minimum hold | hosts so far |", "|---|---|---|---|---|")
	}
	for _, t := range h.Templates {
		lines = append(lines, fmt.Sprintf("| %s | %d | %s | %s | %d |", plain.Markdown(t.Name), t.Headroom, t.Price, t.MinimumHold, h.Numbers[t.Name]))
	}
	return lines
}
