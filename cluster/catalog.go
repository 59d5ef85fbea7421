package cluster

// Offer is what one provider says it can lend of one shared resource now.
// Units are ours; the provider's own are converted by the resource's weight.
type Offer struct {
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	// Headroom is how many more units the provider could give now.
	Headroom int64 `json:"headroom"`
	Price    Price `json:"price"`
	// MinimumHold is how long a loan must be kept.
	MinimumHold Duration `json:"minimum_hold"`
	// BillingStep is the length of time that is paid for once begun; 0 means none.
	BillingStep Duration `json:"billing_step"`
	// PartialReturn tells whether some units of a loan can go back before the rest.
	PartialReturn bool `json:"partial_return"`
	// PollInterval is how often the provider may be asked about one request.
	PollInterval Duration `json:"poll_interval"`
	// MaxRequest limits the units of one request; 0 means that headroom does.
	MaxRequest int64 `json:"max_request"`
	// MaxOpen limits the requests without an answer; at least 1.
	MaxOpen int64 `json:"max_open"`
	// Latency is how long tokens take from the request until they count; 0
	// where the provider does not say.
	Latency Duration `json:"latency,omitempty"`
	// Published is when the provider said so.
	Published Time `json:"published"`
	// Refusals in a row, and until when they keep us from asking again.
	Refusals     int64 `json:"refusals"`
	BackoffUntil Time  `json:"backoff_until,omitempty"`
}

// After answers what is known of an offer now that its lender has said it anew: what
// earlier refusals taught is kept.
func (o Offer) After(old Offer) Offer {
	o.Refusals, o.BackoffUntil = old.Refusals, old.BackoffUntil
	return o
}

// FindOffer finds a provider's offer of a resource.
func FindOffer(offers []Offer, provider, resource string) (Offer, bool) {
	for _, o := range offers {
		if o.Provider == provider && o.Resource == resource {
			return o, true
		}
	}
	return Offer{}, false
}

// Observation is what a provider's licence server counts, as its script read it.
type Observation struct {
	Provider string `json:"provider"`
	Resource string `json:"resource"`
	InUse    int64  `json:"in_use"`
	At       Time   `json:"at"`
}
