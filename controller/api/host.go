package api

import "xce.internal/elastic/cluster"

// WriteHost is one write of a host's workflow to the host's row; exactly one of
// the changes is set.
type WriteHost struct {
	Host string `json:"host" doc:"id of the host, host/<template>-<n>"`
	// Step numbers the writes of one host, from 1: the same step again changes nothing.
	Step int64 `json:"step" minimum:"1"`

	// Intend opens the row before the provider is asked.
	Intend *cluster.HostRequest `json:"intend,omitempty"`
	// Expect tells that the provider has made the machine.
	Expect *ExpectHost `json:"expect,omitempty"`
	// Refuse closes a host that was not made, and lets its template be for a while.
	Refuse *RefuseHost `json:"refuse,omitempty"`
	// Lapse gives a host up that has not joined.
	Lapse *LapseHost `json:"lapse,omitempty"`
	// Drain closes the host to new jobs, and Undrain opens it again.
	Drain   *cluster.Drain `json:"drain,omitempty"`
	Undrain *By            `json:"undrain,omitempty"`
	// Keep keeps the host whatever lies idle, and Release ends that.
	Keep    *cluster.Keep `json:"keep,omitempty"`
	Release *By           `json:"release,omitempty"`
	// StopJobs stops the jobs on a draining host, so that they wait again.
	StopJobs *By `json:"stop_jobs,omitempty"`
	// Fence takes the host out of the cluster if it is empty, and drains or has
	// been idle long enough.
	Fence bool `json:"fence,omitempty"`
	// Confirm tells that the provider has the machine back.
	Confirm bool `json:"confirm,omitempty"`
	// Gone tells that the machine is no more; the jobs on it wait again.
	Gone *By `json:"gone,omitempty"`
}

// By is who wants a change, and why.
type By struct {
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
}

// ExpectHost is what the provider says of a machine that it has made.
type ExpectHost struct {
	Instance string `json:"instance" minLength:"1"`
	// Name is the machine's; empty leaves the name in the cluster to us.
	Name string `json:"name,omitempty"`
	// Address is where it is reached; empty where its name says so.
	Address string `json:"address,omitempty" maxLength:"253"`
}

// RefuseHost is why no machine was made.
type RefuseHost struct {
	Why string `json:"why"`
	// RetryAfter is when the provider wants to be asked again; 0 leaves it to us.
	RetryAfter cluster.Duration `json:"retry_after,omitempty"`
	// Ours tells that it was not the provider's doing, so that its template is
	// not let be.
	Ours bool `json:"ours,omitempty"`
}

// LapseHost is why a host is given up that has not joined.
type LapseHost struct {
	Why string `json:"why"`
	// Late tells that it had its time, so that its template is let be for a while.
	Late bool `json:"late,omitempty"`
}

// HostWritten answers a write to a host's row: the row after it, or why the
// rules of the ledger did not allow it. A refusal is an answer, not a failure.
type HostWritten struct {
	Host    cluster.ElasticHost `json:"host"`
	Refusal *Refusal            `json:"refusal,omitempty"`
}

// JoinToken lets one host join once. It is a secret: it goes to the host through
// the provider's script, and nowhere else.
type JoinToken struct {
	Token    string       `json:"token"`
	Deadline cluster.Time `json:"deadline"`
}

// JoinRequest is the first word of an elastic host, which has no certificate yet.
type JoinRequest struct {
	Host  string `json:"host" doc:"id of the host, host/<template>-<n>"`
	Token string `json:"token"`
	// Request is a certificate signing request, PEM.
	Request string `json:"request"`
	JoinHost
}

// Joined answers a JoinRequest: under which name the host is in the cluster, and
// its certificate for the role host, PEM.
type Joined struct {
	Name        string `json:"name"`
	Certificate string `json:"certificate"`
}

// RenewalRequest asks for another certificate of the host that asks.
type RenewalRequest struct {
	// Request is a certificate signing request, PEM.
	Request string `json:"request"`
}

// Renewed answers a RenewalRequest: a certificate for the same host, PEM.
type Renewed struct {
	Certificate string `json:"certificate"`
}

// HostMachine is what the inventory of a provider is compared with.
type HostMachine struct {
	ID       string            `json:"id"`
	Instance string            `json:"instance,omitempty"`
	State    cluster.HostState `json:"state"`
}

// CatalogView is what providers say they can give now, with what we know of it.
type CatalogView struct {
	Now       cluster.Time     `json:"now"`
	Templates []TemplateStatus `json:"templates"`
	Quotas    []cluster.Quota  `json:"quotas"`
	Offers    []cluster.Offer  `json:"offers"`
	Limits    []cluster.Quota  `json:"limits" doc:"the cluster's own limits on hosts"`
	Halt      string           `json:"halt,omitempty" doc:"why no more hosts are asked for, where that is so"`
}

// TemplateStatus is a template and what there is of it.
type TemplateStatus struct {
	cluster.Template
	Requested int64 `json:"requested"`
	Expected  int64 `json:"expected"`
	Joined    int64 `json:"joined"`
	Leaving   int64 `json:"leaving"`
}
