// Package providers reaches whoever lends tokens or makes hosts through provider scripts.
//
// It holds the contract, version 1: the messages as Go types and as JSON Schemas; the Runner, which
// executes a script under limits; and the classification, which turns whatever came out of a script into
// an answer and an Outcome. A call that broke off or answered nonsense is StatusUnknown: neither success
// nor failure. The caller settles it by list under its own request id before it does anything else.
//
// Package check exercises a script the way a hostile day would; scripts/pool is a working provider
// of tokens, scripts/local one of hosts.
package providers

import "time"

// ContractVersion is the version of the contract that this package speaks.
const ContractVersion = 1

// MostUnits is the largest number of units that a message may carry.
const MostUnits = 1_000_000_000_000

// Verb is what a script is asked to do; its one argument.
type Verb string

// The verbs of the contract. A script need not know observe.
const (
	VerbDescribe Verb = "describe"
	VerbRequest  Verb = "request"
	VerbStatus   Verb = "status"
	VerbReturn   Verb = "return"
	VerbList     Verb = "list"
	VerbObserve  Verb = "observe"
)

// Status is how a call ended.
type Status string

// The statuses. Partial is final: what is missing will not come later under the same request.
const (
	StatusOK      Status = "ok"
	StatusPending Status = "pending"
	StatusPartial Status = "partial"
	StatusRefused Status = "refused"
	StatusUnknown Status = "unknown"
)

// Reason is why a provider refused.
type Reason string

// The reasons: nothing free now; your share is used up; a question that will never do; not allowed.
const (
	ReasonCapacity Reason = "capacity"
	ReasonQuota    Reason = "quota"
	ReasonInvalid  Reason = "invalid"
	ReasonDenied   Reason = "denied"
)

// State is what a provider knows of one request. It is final once granted or refused.
type State string

// The states. Unknown: the provider has no such request, or cannot tell.
const (
	StatePending State = "pending"
	StateGranted State = "granted"
	StateRefused State = "refused"
	StateUnknown State = "unknown"
)

// Kind is what a provider gives.
type Kind string

// The kinds.
const (
	KindTokens Kind = "tokens"
	KindHosts  Kind = "hosts"
)

// Description is the answer to describe: who the provider is and what it could give now.
type Description struct {
	Contract      int    `json:"contract"`
	Name          string `json:"name,omitempty"`
	Kinds         []Kind `json:"kinds"`
	Idempotent    bool   `json:"idempotent"`        // a repeated request id never grants twice
	PartialReturn bool   `json:"partial_return"`    // part of a grant may go back
	Concurrent    bool   `json:"concurrent"`        // calls may run side by side
	Observe       bool   `json:"observe,omitempty"` // the script knows the verb observe

	PollInterval int64      `json:"poll_interval_s"` // seconds between two looks at the same thing
	Templates    []Template `json:"templates,omitzero"`
	Quotas       []Quota    `json:"quotas,omitempty"`
	Offers       []Offer    `json:"offers,omitzero"`
	Recalls      []Recall   `json:"recalls,omitempty"`
}

// Template is a kind of host that a provider can make, and on what terms. What its system keeps for
// itself is not in it.
type Template struct {
	Template    string            `json:"template"`
	CPUs        int64             `json:"cpus"`
	MemoryMB    int64             `json:"memory_mb"`
	Countables  map[string]int64  `json:"countables,omitempty"`
	Features    []string          `json:"features,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Headroom    int64             `json:"headroom"`             // hosts it could make more, now
	Quotas      []string          `json:"quotas,omitempty"`     // names of the quotas that it shares with others
	Price       int64             `json:"price"`                // millionths of a currency unit per host and hour
	MinimumHold int64             `json:"minimum_hold_s"`       // seconds that are paid for in any case
	BillingStep int64             `json:"billing_step_s"`       // seconds; 0 = none
	Latency     int64             `json:"latency_s,omitempty"`  // seconds from the request until a host has joined
	Preference  int64             `json:"preference,omitempty"` // the lowest first, where all else is equal
}

// Quota is a limit on what hosts of several templates have together.
type Quota struct {
	Name   string `json:"name"`
	Counts string `json:"counts"` // hosts, cpus, memory_mb or a countable
	Limit  int64  `json:"limit"`
	Used   int64  `json:"used"` // what hosts that exist take of it
}

// Offer is what a provider could lend of one resource, and on what terms.
type Offer struct {
	Resource    string `json:"resource"`
	Headroom    int64  `json:"headroom"`              // units it could lend more, now
	Price       int64  `json:"price"`                 // millionths of a currency unit per token and hour
	MinimumHold int64  `json:"minimum_hold_s"`        // seconds that are paid for in any case
	BillingStep int64  `json:"billing_step_s"`        // seconds; 0 = none
	MaxRequest  int64  `json:"max_request,omitempty"` // units; 0 = headroom is the only limit
	MaxOpen     int64  `json:"max_open,omitempty"`    // requests open at once; 0 means 1
}

// Recall says that the provider wants units of one grant back. Hosts it takes by itself when the
// grace is over, as with spot capacity.
type Recall struct {
	RequestID string `json:"request_id"`
	Units     int64  `json:"units"`
	Grace     int64  `json:"grace_s,omitempty"` // seconds from now
}

// RequestIn asks for units of a resource, or for hosts of a template; one of the two is set.
type RequestIn struct {
	RequestID string `json:"request_id"`
	Resource  string `json:"resource,omitempty"`
	Template  string `json:"template,omitempty"`
	Units     int64  `json:"units"` // hosts, where a template is asked for
	Join      *Join  `json:"join,omitempty"`
}

// Join is what a host needs to join the cluster; it must reach the host and no one else. The token is
// good for one host, once, until the deadline.
type Join struct {
	Host       string    `json:"host"`       // the host's id in the cluster, which is the request id
	Controller string    `json:"controller"` // its address
	CA         string    `json:"ca"`         // certificate of the cluster's authority, PEM
	Token      string    `json:"token"`
	Deadline   time.Time `json:"deadline"`
}

// Instance is one host as its provider knows it. The id is never used again for another.
type Instance struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"` // of the machine; may be used again once it is gone
	// Address is where it is reached, an IP address or a name; empty where its name says so.
	Address string `json:"address,omitempty"`
}

// RequestOut answers a request. Granted may exceed what was asked: the caller gives the surplus back.
// Of hosts, each that was granted is one of the Instances.
type RequestOut struct {
	RequestID  string     `json:"request_id"`
	Status     Status     `json:"status"`
	Granted    int64      `json:"granted,omitempty"`
	Instances  []Instance `json:"instances,omitempty"`
	Reason     Reason     `json:"reason,omitempty"`
	Message    string     `json:"message,omitempty"`
	RetryAfter int64      `json:"retry_after_s,omitempty"` // seconds
}

// StatusIn asks how requests stand.
type StatusIn struct {
	RequestIDs []string `json:"request_ids"`
}

// StatusOut answers for exactly the requests that were asked for.
type StatusOut struct {
	Requests []RequestState `json:"requests"`
}

// RequestState is how one request stands. Granted is what it got at first, whatever went back since.
type RequestState struct {
	RequestID  string     `json:"request_id"`
	Status     State      `json:"status"`
	Granted    int64      `json:"granted,omitempty"`
	Instances  []Instance `json:"instances,omitempty"`
	Reason     Reason     `json:"reason,omitempty"`
	Message    string     `json:"message,omitempty"`
	RetryAfter int64      `json:"retry_after_s,omitempty"` // seconds
}

// ReturnIn gives units back. Remaining is an absolute target, so a repeated return changes nothing.
type ReturnIn struct {
	RequestID string     `json:"request_id"`
	Units     int64      `json:"units"`               // what the caller believes goes back now
	Remaining int64      `json:"remaining"`           // what shall still be lent afterwards
	Instances []Instance `json:"instances,omitempty"` // the hosts that go back, as far as the caller knows them
}

// ReturnOut answers a return. Remaining is what is really still lent; a refusal or an unknown says nothing of it.
type ReturnOut struct {
	RequestID  string `json:"request_id"`
	Status     Status `json:"status"`
	Remaining  int64  `json:"remaining"`
	Reason     Reason `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter int64  `json:"retry_after_s,omitempty"` // seconds
}

// ListOut is everything the provider believes it lends us now. Pending requests are not in it.
type ListOut struct {
	Grants []Grant `json:"grants"`
}

// Grant is what one request has, as the provider sees it: units of a resource, or hosts of a template.
type Grant struct {
	RequestID string     `json:"request_id"`
	Resource  string     `json:"resource,omitempty"`
	Template  string     `json:"template,omitempty"`
	Units     int64      `json:"units"`
	Instances []Instance `json:"instances,omitempty"` // of hosts, each
	Since     time.Time  `json:"since,omitzero"`
}

// ObserveOut is what the real licence server counts.
type ObserveOut struct {
	Observations []Observation `json:"observations"`
}

// Observation is one count of the licence server, and when it was taken.
type Observation struct {
	Resource string    `json:"resource"`
	InUse    int64     `json:"in_use"`
	Total    *int64    `json:"total,omitempty"` // nil = the server did not say
	At       time.Time `json:"at"`
}

// Refusal may answer any verb: refused with a reason, or unknown when the script cannot tell.
type Refusal struct {
	RequestID  string `json:"request_id,omitempty"`
	Status     Status `json:"status"`
	Reason     Reason `json:"reason,omitempty"`
	Message    string `json:"message,omitempty"`
	RetryAfter int64  `json:"retry_after_s,omitempty"` // seconds
}

// Outcome is how a call of a script ended, whatever the verb.
//
// Refused is a fact: the provider said so, or the question was malformed and never asked. Everything
// that leaves a doubt is unknown.
type Outcome struct {
	Status     Status `json:"status"`
	Reason     Reason `json:"reason,omitempty"`
	RetryAfter int64  `json:"retry_after_s,omitempty"` // seconds
	Message    string `json:"message,omitempty"`
	// Text is the script's exact output, clipped; kept when the status is refused or unknown.
	Text string `json:"text,omitempty"`
}
