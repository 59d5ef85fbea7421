// Package activities wraps provider scripts and controller updates for
// Temporal. An activity does one thing under the id it was given, may be run
// again without harm, and answers business outcomes (refused, partial, unknown)
// as values: an error is always a fault of the infrastructure.
//
// Provider scripts count in the lender's units; here, and nowhere else, they
// are converted to the cluster's by the resource's unit weight.
package activities

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/policy"
	"xce.internal/elastic/providers"
)

// Names under which the activities are registered. They are part of recorded
// histories: a changed name is a new activity.
const (
	ProviderSurvey  = "provider.survey"
	ProviderRequest = "provider.request"
	ProviderStatus  = "provider.status"
	ProviderHolding = "provider.holding"
	ProviderReturn  = "provider.return"

	LedgerIntend  = "ledger.intend"
	LedgerCommit  = "ledger.commit"
	LedgerRefuse  = "ledger.refuse"
	LedgerFence   = "ledger.fence"
	LedgerRecall  = "ledger.recall"
	LedgerConfirm = "ledger.confirm"
	LedgerHost    = "ledger.host"

	ControllerPublish = "controller.publish"
	ControllerView    = "controller.view"
	ControllerStray   = "controller.stray"

	StarterLoan  = "starter.loan"
	StarterHosts = "starter.hosts"
)

// Ask names one request of ours at its provider: for units of a resource, or
// for hosts of a template.
type Ask struct {
	Provider string `json:"provider"`
	Request  string `json:"request"`
	Resource string `json:"resource,omitempty"`
	Template string `json:"template,omitempty"`
	Units    int64  `json:"units"`
	Weight   int64  `json:"weight"`
}

// What says in words what is asked for.
func (a Ask) What() string {
	if a.Template != "" {
		return "host of " + a.Template
	}
	return fmt.Sprintf("%d %s", a.Units, a.Resource)
}

// Grant is what a provider gave, or holds for us, under one request.
type Grant struct {
	Outcome providers.Outcome `json:"outcome"`
	// Units are whole units of ours; Rest tells that the lender counts a part
	// of one more.
	Units int64 `json:"units"`
	Rest  bool  `json:"rest"`
	// Instances are the hosts, where hosts were asked for.
	Instances []providers.Instance `json:"instances,omitempty"`
}

// Ceil is the grant with a rest counted as a whole unit.
func (g Grant) Ceil() int64 {
	if g.Rest {
		return g.Units + 1
	}
	return g.Units
}

// GiveBack gives units of a request back until `Remaining` are left with us.
type GiveBack struct {
	Ask
	Remaining int64 `json:"remaining"`
	// Instances are the hosts that go back.
	Instances []providers.Instance `json:"instances,omitempty"`
}

// SurveyIn asks a provider what it offers, what it wants back and what it
// believes we have, all at once.
type SurveyIn struct {
	Provider string           `json:"provider"`
	Weights  map[string]int64 `json:"weights"`
}

// Survey answers a SurveyIn. Describe and List tell how each part went; what
// failed is empty.
type Survey struct {
	Describe     providers.Outcome     `json:"describe"`
	List         providers.Outcome     `json:"list"`
	Offers       []cluster.Offer       `json:"offers"`
	Recalls      []Holding             `json:"recalls"`
	Holdings     []Holding             `json:"holdings"`
	Observations []cluster.Observation `json:"observations"`

	Templates []cluster.Template `json:"templates,omitempty"`
	Quotas    []cluster.Quota    `json:"quotas,omitempty"`
	// Reclaims are the hosts that the provider takes by itself before long.
	Reclaims []Reclaim `json:"reclaims,omitempty"`
	// Hosts is how the list of hosts differs from the books.
	Hosts Inventory `json:"hosts"`
}

// Reclaim is a host that the provider takes by itself when the grace is over.
type Reclaim struct {
	Host  string           `json:"host"`
	Grace cluster.Duration `json:"grace"`
}

// Inventory is how a provider's list of hosts differs from the books. Ids are
// those of the first that differ.
type Inventory struct {
	policy.Inventory
	// MissingHosts are in the books, and not listed.
	MissingHosts []string `json:"missing_hosts,omitempty"`
	// OrphanHosts are listed, and no open host stands for them.
	OrphanHosts []Orphan `json:"orphan_hosts,omitempty"`
	// Swapped are hosts that are listed as another machine than the books have.
	Swapped []string `json:"swapped,omitempty"`
}

// Orphan is machines that a provider lists under a request id for which no open
// host stands.
type Orphan struct {
	Request   string               `json:"request"`
	Template  string               `json:"template"`
	Instances []providers.Instance `json:"instances"`
}

// Holding is a number of units under one of our request ids.
type Holding struct {
	Request  string `json:"request"`
	Resource string `json:"resource"`
	Units    int64  `json:"units"` // a part of a unit counts as one
}

// View asks for what borrowing from a provider is decided upon.
type View struct {
	Provider string   `json:"provider"`
	Ask      []string `json:"ask"`
}
