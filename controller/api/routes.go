package api

import (
	"net/http"
	"slices"
)

// Role is what a peer's certificate says it is.
type Role string

// Roles of peers.
const (
	Admin       Role = "admin"
	Provisioner Role = "provisioner"
	HostRole    Role = "host"
	Submitter   Role = "submitter"
	Viewer      Role = "viewer"

	// Anyone may call, even without a certificate: the call itself has what lets in.
	Anyone Role = "anyone"
)

// Route is one operation of the API and who may call it.
type Route struct {
	ID      string
	Method  string
	Path    string
	Summary string
	Roles   []Role
}

// Permits tells whether a peer of the role may call the route. What is not
// listed is denied.
func (r Route) Permits(role Role) bool {
	return slices.Contains(r.Roles, role) || slices.Contains(r.Roles, Anyone)
}

var readers = []Role{Admin, Provisioner, Submitter, Viewer}

// The routes of the API. This is the one table that says which role may call what.
var (
	GetStatus      = Route{"status", http.MethodGet, "/v1/status", "The cluster as it is now", readers}
	GetChanges     = Route{"changes", http.MethodGet, "/v1/changes", "Audit records after a revision; waits for the next one", readers}
	GetJobs        = Route{"jobs", http.MethodGet, "/v1/jobs", "Jobs", readers}
	GetLoans       = Route{"loans", http.MethodGet, "/v1/loans", "Loans", readers}
	GetExplanation = Route{"explain", http.MethodGet, "/v1/explain", "Why a job waits, a loan is kept, a resource is as it is", readers}
	GetSession     = Route{"session", http.MethodGet, "/v1/session", "What the last session decided and found: demand, idle supply, reservations, who waits and why", readers}

	GetSnapshot       = Route{"snapshot", http.MethodGet, "/v1/snapshot", "The state that sessions judge, with the names of users and commands", []Role{Admin}}
	GetHashedSnapshot = Route{"hashed-snapshot", http.MethodGet, "/v1/snapshot/hashed", "The state that sessions judge, with hashes for the names of users and commands", readers}

	SubmitJob = Route{"submit", http.MethodPost, "/v1/jobs", "Submit a job", []Role{Admin, Submitter}}

	SetOwned = Route{"set-owned", http.MethodPut, "/v1/resources/{name}/owned", "Change how many units the cluster owns", []Role{Admin}}
	PutLend  = Route{"lend", http.MethodPut, "/v1/lendings/{id}", "Lend units to another cluster, or take them back", []Role{Admin}}

	PutCatalog      = Route{"publish-catalog", http.MethodPut, "/v1/catalog/{provider}", "Publish what a provider offers", []Role{Provisioner}}
	GetProviderView = Route{"provider-view", http.MethodGet, "/v1/providers/{provider}/view", "What borrowing from a provider is decided upon", []Role{Provisioner}}
	ReportStray     = Route{"report-stray", http.MethodPost, "/v1/strays", "Record something a provider lists that no open loan stands for", []Role{Provisioner}}
	LoanIntend      = Route{"loan-intend", http.MethodPost, "/v1/ledger/intend", "Open a loan's row", []Role{Provisioner}}
	LoanCommit      = Route{"loan-commit", http.MethodPost, "/v1/ledger/commit", "Take a grant into the total", []Role{Provisioner}}
	LoanRefuse      = Route{"loan-refuse", http.MethodPost, "/v1/ledger/refuse", "Close a loan that was not granted", []Role{Provisioner}}
	LoanFence       = Route{"loan-fence", http.MethodPost, "/v1/ledger/fence", "Take unused units out of the total", []Role{Provisioner}}
	LoanRecall      = Route{"loan-recall", http.MethodPost, "/v1/ledger/recall", "Take recalled units out of the total", []Role{Provisioner}}
	LoanConfirm     = Route{"loan-confirm", http.MethodPost, "/v1/ledger/confirm", "Record that fenced units are back with the lender", []Role{Provisioner}}

	HostWrite = Route{"host-write", http.MethodPost, "/v1/ledger/host", "Write one change of a host's workflow to its row", []Role{Provisioner}}
	// PostJoinToken answers a secret, and so does no other role's business.
	PostJoinToken = Route{"join-token", http.MethodPost, "/v1/join-tokens", "Make the one-time token with which an expected host joins", []Role{Provisioner}}
	GetMachines   = Route{"machines", http.MethodGet, "/v1/providers/{provider}/machines", "What a provider's inventory is compared with", []Role{Provisioner}}
	GetHosts      = Route{"hosts", http.MethodGet, "/v1/elastic-hosts", "Elastic hosts: the open ones, or all", readers}
	GetCatalog    = Route{"catalog", http.MethodGet, "/v1/catalog", "What providers can give now, and what is left alone until when", readers}
	PostRetry     = Route{"provider-retry", http.MethodPost, "/v1/providers/{provider}/retry", "Forget a provider's refusals, so that it is asked again at once", []Role{Admin}}

	PostTend  = Route{"tend-leases", http.MethodPost, "/v1/leases", "Say that a provisioner is there; answers which leases it holds", []Role{Provisioner}}
	GetLeases = Route{"leases", http.MethodGet, "/v1/leases", "Which provisioners are there, and which acts for which provider", readers}
	PostMove  = Route{"lease-move", http.MethodPost, "/v1/leases/{provider}/move", "Have a provider's lease go to a provisioner", []Role{Admin}}

	// PostJoin is open to callers without a certificate: the token is what lets them in.
	PostJoin = Route{"join-with-token", http.MethodPost, "/v1/join", "Join with a one-time token, and get a certificate", []Role{Anyone}}

	PutHost        = Route{"join", http.MethodPut, "/v1/hosts/{host}", "Join the cluster as a host", []Role{HostRole}}
	GetAssignments = Route{"assignments", http.MethodGet, "/v1/hosts/{host}/jobs", "Jobs that a host should run; waits for a change", []Role{HostRole}}
	PostJobEnd     = Route{"job-end", http.MethodPost, "/v1/hosts/{host}/jobs/{id}/end", "Report a job's end", []Role{HostRole}}
)

// Routes lists every route.
var Routes = []Route{
	GetStatus, GetChanges, GetJobs, GetLoans, GetExplanation, GetSession, GetSnapshot, GetHashedSnapshot, SubmitJob, SetOwned, PutLend,
	PutCatalog, GetProviderView, ReportStray,
	LoanIntend, LoanCommit, LoanRefuse, LoanFence, LoanRecall, LoanConfirm,
	HostWrite, PostJoinToken, GetMachines, GetHosts, GetCatalog, PostRetry, PostJoin,
	PostTend, GetLeases, PostMove,
	PutHost, GetAssignments, PostJobEnd,
}
