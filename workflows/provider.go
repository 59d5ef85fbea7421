package workflows

import (
	"fmt"
	"slices"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/plain"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
)

// Provider is all that a provider's story remembers.
type Provider struct {
	Name string `json:"name"`
	// SurveyEvery is how often the provider is asked what it offers and lends.
	SurveyEvery cluster.Duration `json:"survey_every"`
	// Numbers counts the loans of each resource, so that ids never repeat.
	Numbers map[string]int64 `json:"numbers"`
	// NextSurvey and LastSurvey are instants.
	NextSurvey cluster.Time `json:"next_survey,omitempty"`
	LastSurvey cluster.Time `json:"last_survey,omitempty"`
	// Starting are loans that were started and are not in the books yet.
	Starting []Starting `json:"starting"`
	// Strays are request ids that the last list had and the books have not, with
	// what became of them.
	Strays map[string]Stray `json:"strays"`
	// Weights are the resources' unit weights, as the last view had them.
	Weights map[string]int64 `json:"weights"`
	// Offers are the last ones published, and Open the open loans seen last.
	Offers []cluster.Offer `json:"offers"`
	Open   int64           `json:"open"`
	// Silent counts the surveys in a row that failed.
	Silent int64 `json:"silent"`
	// Trouble is what is wrong with the provider, in its own words.
	Trouble string `json:"trouble,omitempty"`
	// Hosts is what the story remembers of the provider's hosts.
	Hosts ProviderHosts `json:"hosts,omitzero"`
}

// Starting is a loan on its way into the books.
type Starting struct {
	ID       string       `json:"id"`
	Resource string       `json:"resource"`
	Units    int64        `json:"units"`
	Since    cluster.Time `json:"since"`
}

// Stray is a request id of ours that the provider lists and the books do not have open.
type Stray struct {
	Seen     int64 `json:"seen"`
	Reported bool  `json:"reported"`
	// Since is when it was seen first; kept of hosts.
	Since cluster.Time `json:"since,omitempty"`
}

const (
	// shortestSurvey keeps a provider from being surveyed at every loan's step.
	shortestSurvey = 2 * cluster.Second
	// startingFor is how long a started loan is waited for: one that does not
	// show in the books by then has ended, or will be found by its own story.
	startingFor = cluster.Minute
	// emptyListDoubt is how many held loans make an empty list unbelievable.
	emptyListDoubt = 2
	// silentFor is how many surveys in a row may fail before a provider's offers
	// count for nothing.
	silentFor = 3
	// mostStrays is how many strays are dealt with at a time.
	mostStrays = 100
)

// Live tells the provider's story: survey it now and then, and take the loans
// that the policy decides upon whenever demand changes. It has no end; it
// answers false where the environment is full.
func (p *Provider) Live(env ProviderEnv) bool {
	for !env.Full() {
		var found activities.Survey
		if env.Now() >= p.NextSurvey {
			found = p.survey(env)
		}
		view := env.View(nil)
		p.recall(env, view.Open, found.Recalls)
		if found.List.Status == providers.StatusOK {
			p.reconcile(env, view.Open, found.Holdings)
			p.takeStock(env, found.Hosts)
		}
		p.reclaim(env, found.Reclaims)
		p.borrow(env, view.View)
		p.provision(env, view.Hosts)
		env.Show(p.summary)
		for m, ok := env.Receive(p.NextSurvey); ok; m, ok = env.Receive(env.Now()) {
			p.hear(env, m)
		}
	}
	return false
}

// hear takes a message. That demand changed needs no more than another look, and
// being told of a survey interval that is kept already not even a survey.
func (p *Provider) hear(env ProviderEnv, m Message) {
	if m.Believe {
		p.Hosts.Believe, p.NextSurvey = true, env.Now()
		return
	}
	if m.Changed == nil || *m.Changed == (Changed{SurveyEvery: p.SurveyEvery, OrphanGrace: p.Hosts.OrphanGrace}) {
		return
	}
	if m.Changed.SurveyEvery > 0 {
		p.SurveyEvery, p.Hosts.OrphanGrace = m.Changed.SurveyEvery, m.Changed.OrphanGrace
	}
	p.Starting = slices.DeleteFunc(p.Starting, func(s Starting) bool { return s.ID == m.Changed.Loan })
	p.NextSurvey = min(p.NextSurvey, max(env.Now(), p.LastSurvey.Add(shortestSurvey)))
}

// survey asks the provider what it offers, wants back and believes we have, and
// publishes what it offers.
func (p *Provider) survey(env ProviderEnv) activities.Survey {
	p.LastSurvey = env.Now()
	p.NextSurvey = p.LastSurvey.Add(max(p.SurveyEvery, shortestSurvey))
	if len(p.Weights) == 0 {
		p.Weights = env.View(nil).Weights
	}
	s := env.Survey(activities.SurveyIn{Provider: p.Name, Weights: p.Weights})
	p.Trouble = ""
	if s.Describe.Status != providers.StatusOK {
		p.Trouble = "describe: " + words(s.Describe)
		p.silent(env)
		return s
	}
	p.Offers, p.Hosts.Templates, p.Silent = s.Offers, s.Templates, 0
	env.Publish(api.Catalog{Offers: s.Offers, Observations: s.Observations, Templates: s.Templates, Quotas: s.Quotas})
	if s.List.Status != providers.StatusOK {
		p.Trouble = "list: " + words(s.List)
	}
	return s
}

// silent takes a provider that does not describe itself at its last word for a
// while; then nothing is expected of it, and other lenders are asked.
func (p *Provider) silent(env ProviderEnv) {
	p.Silent++
	if p.Silent != silentFor {
		return
	}
	p.Offers = slices.Clone(p.Offers)
	for i := range p.Offers {
		p.Offers[i].Headroom = 0
	}
	p.Hosts.silence()
	env.Publish(api.Catalog{Offers: p.Offers, Templates: p.Hosts.Templates})
}

// recall tells the loans of which the provider wants more back than the books
// have as recalled.
func (p *Provider) recall(env ProviderEnv, open []cluster.Loan, recalls []activities.Holding) {
	for _, r := range recalls {
		i := slices.IndexFunc(open, func(l cluster.Loan) bool { return l.ID == r.Request })
		if i >= 0 && r.Units > open[i].Recalled+open[i].Fenced {
			env.TellLoan(r.Request, Message{Recalled: &Recalled{Units: r.Units, At: p.LastSurvey}})
		}
	}
}

// reconcile compares what the provider lists with the open loans. A loan that
// differs is told to look for itself; what no open loan stands for is a stray.
func (p *Provider) reconcile(env ProviderEnv, open []cluster.Loan, holdings []activities.Holding) {
	if held := countHeld(open); len(holdings) == 0 && held >= emptyListDoubt {
		p.Trouble = fmt.Sprintf("list: it shows nothing while we hold %d loans; not believed", held)
		return
	}
	for i := range open {
		if l := &open[i]; isHeld(l) && listed(holdings, l.ID) != l.Held() {
			env.TellLoan(l.ID, Message{Check: true})
		}
	}
	p.strays(env, slices.DeleteFunc(holdings, func(h activities.Holding) bool {
		return slices.ContainsFunc(open, func(l cluster.Loan) bool { return l.ID == h.Request }) ||
			slices.ContainsFunc(p.Starting, func(s Starting) bool { return s.ID == h.Request })
	}))
}

// isHeld tells that the lender has granted something of a loan and has not got all of it back.
func isHeld(l *cluster.Loan) bool { return l.State != cluster.LoanRequested && l.Held() > 0 }

func countHeld(open []cluster.Loan) (n int) {
	for i := range open {
		if isHeld(&open[i]) {
			n++
		}
	}
	return n
}

func listed(holdings []activities.Holding, request string) int64 {
	var n int64
	for _, h := range holdings {
		if h.Request == request {
			n += h.Units
		}
	}
	return n
}

// strays deals with what the provider lists and no open loan stands for. Seen
// a second time, units of a closed loan are given back; units under an id that
// the books never had are only reported, since they may be someone else's.
func (p *Provider) strays(env ProviderEnv, found []activities.Holding) {
	found = found[:min(len(found), mostStrays)]
	next := map[string]Stray{}
	var closed []string
	if len(found) > 0 {
		ids := make([]string, len(found))
		for i, h := range found {
			ids[i] = h.Request
		}
		closed = env.View(ids).Closed
	}
	for _, h := range found {
		s := p.Strays[h.Request]
		s.Seen++
		if s.Seen > 1 {
			s = p.settleStray(env, h, s, slices.Contains(closed, h.Request))
		}
		next[h.Request] = s
	}
	p.Strays = next
}

func (p *Provider) settleStray(env ProviderEnv, h activities.Holding, s Stray, closed bool) Stray {
	what := fmt.Sprintf("%s lists %d %s under an id that the ledger does not have; return them by hand if they are ours", p.Name, h.Units, h.Resource)
	if closed {
		left := env.Return(activities.GiveBack{
			Ask: activities.Ask{Provider: p.Name, Request: h.Request, Resource: h.Resource, Units: h.Units, Weight: max(p.Weights[h.Resource], 1)},
		})
		what = fmt.Sprintf("%s listed %d %s of a closed loan; given back: %s", p.Name, h.Units, h.Resource, words(left.Outcome))
	}
	if !s.Reported {
		env.ReportStray(api.Stray{Provider: p.Name, Request: h.Request, Resource: h.Resource, Units: h.Units, What: what})
	}
	s.Reported = true
	return s
}

// borrow takes the loans that the policy decides upon, until it wants no more.
func (p *Provider) borrow(env ProviderEnv, view policy.View) {
	now := env.Now()
	p.Starting = slices.DeleteFunc(p.Starting, func(s Starting) bool {
		return now.Sub(s.Since) > startingFor || slices.ContainsFunc(view.Open, func(l cluster.Loan) bool { return l.ID == s.ID })
	})
	for _, s := range p.Starting {
		s.count(&view)
	}
	for plans := policy.Borrow(view, now); len(plans) > 0; plans = policy.Borrow(view, now) {
		for _, plan := range plans {
			s := p.start(env, plan, view.Loans[plan.Demand.Resource])
			s.count(&view)
		}
	}
	p.Weights, p.Open = view.Weights, int64(len(view.Open))
}

// start starts the loan of a plan.
func (p *Provider) start(env ProviderEnv, plan policy.Plan, booked int64) Starting {
	resource := plan.Demand.Resource
	s := Starting{ID: LoanID(resource, p.Name, p.nextNumber(resource, booked)), Resource: resource, Units: plan.Units, Since: env.Now()}
	env.StartLoan(cluster.LoanRequest{
		ID: s.ID, Provider: p.Name, Resource: resource, Units: plan.Units,
		Jobs: plan.Demand.Jobs, Reason: plan.Demand.Reason, Terms: plan.Terms,
	})
	p.Starting = append(p.Starting, s)
	return s
}

// count counts a loan on its way into the books as requested, and its demand as met.
func (s Starting) count(view *policy.View) {
	view.Room[s.Resource] -= s.Units
	view.Open = append(view.Open, cluster.Loan{
		LoanRequest: cluster.LoanRequest{ID: s.ID, Resource: s.Resource, Units: s.Units}, State: cluster.LoanRequested,
	})
	for i, d := range view.Demand {
		if d.Resource == s.Resource {
			view.Demand[i].Units -= s.Units
		}
	}
}

// nextNumber numbers a loan. The books know how many there were, should this
// story ever have to begin anew.
func (p *Provider) nextNumber(resource string, booked int64) int64 {
	if p.Numbers == nil {
		p.Numbers = map[string]int64{}
	}
	p.Numbers[resource] = max(p.Numbers[resource], booked) + 1
	return p.Numbers[resource]
}

// summary puts into words how the provider stands.
func (p *Provider) summary() Summary {
	state := "ok"
	if p.Trouble != "" {
		state = "trouble"
	}
	title := fmt.Sprintf("%s: %d open loans, %s", p.Name, p.Open, state)
	details := []string{
		fmt.Sprintf("**%s**", plain.Markdown(title)), "",
		fmt.Sprintf("Next survey at %s.", p.NextSurvey.Std().Format("2006-01-02 15:04:05 UTC")), "",
		"| resource | headroom | price | minimum hold | loans so far |", "|---|---|---|---|---|",
	}
	for _, o := range p.Offers {
		details = append(details, fmt.Sprintf("| %s | %d | %s | %s | %d |", plain.Markdown(o.Resource), o.Headroom, o.Price, o.MinimumHold, p.Numbers[o.Resource]))
	}
	details = append(details, p.Hosts.details()...)
	if p.Trouble != "" {
		details = append(details, "", "Trouble: "+plain.Markdown(p.Trouble))
	}
	return Summary{State: state, Units: p.Open, Waits: "demand, or the next survey", Title: title, Details: details}
}
