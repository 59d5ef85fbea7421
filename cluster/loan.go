package cluster

// LoanState says where a loan is in its life.
type LoanState string

// States of a loan.
const (
	LoanRequested LoanState = "requested" // intended; the lender has not settled it
	LoanBorrowed  LoanState = "borrowed"  // its units count in the total
	LoanReturning LoanState = "returning" // fenced units are on their way back
	LoanReturned  LoanState = "returned"  // the lender has all its units back
	LoanRefused   LoanState = "refused"   // nothing was granted
)

// Open tells whether a loan in state s still stands for something.
func (s LoanState) Open() bool { return s != LoanReturned && s != LoanRefused }

// Terms are the conditions of a loan, taken from the offer when it was intended.
type Terms struct {
	Price         Price    `json:"price"`
	MinimumHold   Duration `json:"minimum_hold"`
	BillingStep   Duration `json:"billing_step"`
	PartialReturn bool     `json:"partial_return"`
	// PollInterval is how often the lender may be asked about one request.
	PollInterval Duration `json:"poll_interval"`
	// UnitWeight is how many of the lender's units one of ours is worth, at least 1.
	UnitWeight int64 `json:"unit_weight"`
}

// LoanRequest is what a loan is intended with.
type LoanRequest struct {
	ID       string  `json:"id"`
	Provider string  `json:"provider"`
	Resource string  `json:"resource"`
	Units    int64   `json:"units"`
	Jobs     []int64 `json:"jobs"`
	Reason   string  `json:"reason"`
	Terms
}

// Loan is the ledger's row of one loan: tokens borrowed from one provider by
// one request. The granted units are split over four columns, each unit in one
// of them: Borrowed (counts in the total), Recalled (wanted back by the lender
// and out of the total, but perhaps still in use), Fenced (out of the total and
// unused, to be given back), Returned (the lender confirmed it).
type Loan struct {
	LoanRequest
	State    LoanState `json:"state"`
	Borrowed int64     `json:"borrowed"`
	Recalled int64     `json:"recalled"`
	Fenced   int64     `json:"fenced"`
	Returned int64     `json:"returned"`
	// Step numbers the last write of the loan's workflow, so that a repeated
	// write is known as such.
	Step      int64 `json:"step"`
	Intended  Time  `json:"intended"`
	Committed Time  `json:"committed,omitempty"`
	HoldUntil Time  `json:"hold_until,omitempty"`
	// AskAgain is when the loan's workflow will ask for a fence next.
	AskAgain Time `json:"ask_again,omitempty"`
	Closed   Time `json:"closed,omitempty"`
	// Why says in one sentence why the loan is in its state.
	Why string `json:"why,omitempty"`
}

// Granted is all that the lender ever gave.
func (l Loan) Granted() int64 { return l.Borrowed + l.Recalled + l.Fenced + l.Returned }

// Held is what the lender has not got back yet.
func (l Loan) Held() int64 { return l.Borrowed + l.Recalled + l.Fenced }

// Lending is the ledger's row of units of ours that another cluster has.
type Lending struct {
	ID       string `json:"id"`
	Resource string `json:"resource"`
	Units    int64  `json:"units"`
	To       string `json:"to"`
	Since    Time   `json:"since"`
}
