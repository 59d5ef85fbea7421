package scheduling

import "xce.internal/elastic/cluster"

// Input is the state that a session judges, read at one moment. It is also what
// a snapshot file holds.
type Input struct {
	Now    cluster.Time `json:"now"`
	Policy Policy       `json:"policy"`
	// Hosts are those that have joined; a drained or silent one takes no new jobs.
	Hosts []Host `json:"hosts"`
	// Expected are hosts that were asked for and have not joined yet.
	Expected  []cluster.ExpectedHost `json:"expected,omitempty"`
	Resources []Resource             `json:"resources"`
	Running   []cluster.Job          `json:"running,omitempty"`
	// Reservations are those that stand, as the last session of the conservative
	// order answered them.
	Reservations []Reservation `json:"reservations,omitempty"`
	// Settled tells that nothing has become free since they were made: then they
	// stand as they are, else earlier places are looked for.
	Settled bool          `json:"settled,omitempty"`
	Jobs    []cluster.Job `json:"jobs"` // the waiting ones
	// Templates, Quotas and Offers are the catalog, as the providers published it.
	Templates  []cluster.Template `json:"templates,omitempty"`
	Quotas     []cluster.Quota    `json:"quotas,omitempty"`
	Offers     []cluster.Offer    `json:"offers"`
	Thresholds []Threshold        `json:"thresholds,omitempty"`
}

// Order is the way in which waiting jobs get real capacity.
type Order string

// Orders; the package's doc says what each promises.
const (
	FCFS         Order = "fcfs"
	EASY         Order = "easy"
	Conservative Order = "conservative"
)

// Policy says in which order waiting jobs get real capacity.
type Policy struct {
	// Order is fcfs where it is empty.
	Order Order `json:"order,omitempty"`
	// Depth limits the reservations of conservative; 0 means one for every job.
	Depth int64 `json:"depth,omitempty"`
}

// Host is a host that has joined.
type Host struct {
	Name string `json:"name"`
	// What the host has; what its running jobs take is subtracted by the session.
	cluster.Capacity
	// Template is the one it was made from; empty where the cluster owns it.
	Template string `json:"template,omitempty"`
	// Closed hosts (drained, silent, on hold) keep their jobs and get no new
	// ones; the text says why.
	Closed string `json:"closed,omitempty"`
	// IdleSince is since when the last session found it idle; 0 means that it was not.
	IdleSince cluster.Time `json:"idle_since,omitempty"`
}

// Resource is a shared resource as the session sees it.
type Resource struct {
	cluster.SharedResource
	Total int64 `json:"total"`
	InUse int64 `json:"in_use"`
	// Loans that are open: requested ones are coming supply and take room
	// under the limit.
	Loans []cluster.Loan `json:"loans"`
	// Idle is the idle clock as the last session left it.
	Idle cluster.IdleClock `json:"idle"`
}

// Threshold keeps demand back until enough jobs have waited long enough. Of
// several for one queue or resource, one that is met suffices.
type Threshold struct {
	// Queue or Resource is whose waiting jobs are counted; one of them is empty.
	Queue    string `json:"queue,omitempty"`
	Resource string `json:"resource,omitempty"`
	// Jobs is how many of them must have waited for Wait.
	Jobs int64            `json:"jobs"`
	Wait cluster.Duration `json:"wait"`
}
