package workflows

import (
	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// Env is what every story has of the world.
type Env interface {
	Now() cluster.Time
	// Receive answers the next message as soon as there is one, or false once
	// the time has come. A zero time is for ever.
	Receive(until cluster.Time) (Message, bool)
	// Full tells that the story should stop where it is, to be taken up again
	// from its state. It is never true while a message is unanswered.
	Full() bool
	// Show tells people how the story stands; where nobody reads it, it is not even put into words.
	Show(func() Summary)
}

// DealEnv is what a story can ask of its provider. None of the steps fails: what
// they answer is the business outcome, and a call of which no answer came has the
// outcome unknown.
type DealEnv interface {
	Env
	Request(activities.Ask) activities.Grant
	Status(activities.Ask) activities.Grant
	Holding(activities.Ask) activities.Grant
	Return(activities.GiveBack) activities.Grant
}

// LoanEnv is what a loan's story can do.
type LoanEnv interface {
	DealEnv
	Intend(api.IntendLoan) api.Written
	Commit(api.CommitLoan) api.Written
	Refuse(api.RefuseLoan) api.Written
	Fence(api.FenceLoan) api.Written
	Recall(api.RecallLoan) api.Written
	Confirm(api.ConfirmLoan) api.Written

	// TellProvider sends the provider's story a message.
	TellProvider(provider string, m Message)
}

// HostEnv is what a host's story can do.
type HostEnv interface {
	DealEnv
	WriteHost(api.WriteHost) api.HostWritten
}

// ProviderEnv is what a provider's story can do.
type ProviderEnv interface {
	Env
	Survey(activities.SurveyIn) activities.Survey
	Return(activities.GiveBack) activities.Grant
	Publish(api.Catalog)
	View(ask []string) api.ProviderView
	ReportStray(api.Stray)
	StartLoan(cluster.LoanRequest)
	// TellLoan sends a loan's story a message.
	TellLoan(loan string, m Message)
	StartHosts([]cluster.HostRequest)
	// TellHost sends a host's story a message.
	TellHost(host string, m Message)
}

// Message is what a story can be told; exactly one field is set.
type Message struct {
	// Return is an operator's wish.
	Return *ReturnWish
	// Recalled tells a loan what its lender wants back.
	Recalled *Recalled
	// Check asks a loan or host to compare its books with the provider's list.
	Check bool
	// Believe has a provider take its next list of hosts at its word.
	Believe bool
	// Wish is an operator's wish for a host.
	Wish *HostWish
	// Joined and the others tell a host what the cluster saw of it.
	Joined  *HostJoined
	Emptied bool
	Health  *HostHealth
	// Reclaimed tells a host that its provider takes it.
	Reclaimed *Reclaimed
	// Demand tells a provider that its demand changed.
	Demand bool
	// Changed tells a provider that what it lends changed, and by which loan.
	Changed *Changed
}

// HostJoined tells a host's story when it joined.
type HostJoined struct {
	At cluster.Time `json:"at"`
}

// HostHealth tells a host's story how it answers.
type HostHealth struct {
	Health cluster.Health `json:"health"`
}

// Reclaimed tells a host's story when its provider takes it by itself.
type Reclaimed struct {
	By cluster.Time `json:"by"`
}

// HostWish is an operator's wish for a host, and waits for the answer.
type HostWish struct {
	Kind HostUpdate
	HostOrder
	Answer func(HostAnswer)
}

// HostOrder is the argument of the updates of a host.
type HostOrder struct {
	By  string `json:"by"`
	Why string `json:"why,omitempty"`
	// Within is how long jobs may run on at a drain; 0 means as long as they like.
	Within cluster.Duration `json:"within,omitempty"`
	// Requeue stops the jobs that still run when that time is over.
	Requeue bool `json:"requeue,omitempty"`
}

// HostAnswer answers an operator's wish: what the host is now, or why not.
type HostAnswer struct {
	State   string `json:"state"`
	Refused string `json:"refused,omitempty"`
}

// Changed tells a provider what changed: what one loan has of it, or how often
// it is to be surveyed. Both may be empty: then it is just surveyed anew.
type Changed struct {
	Loan        string           `json:"loan,omitempty"`
	SurveyEvery cluster.Duration `json:"survey_every,omitempty"`
	OrphanGrace cluster.Duration `json:"orphan_grace,omitempty"`
}

// Recalled is how many units of a loan its lender wanted back in all, and when it
// was asked: units that went back since are among them.
type Recalled struct {
	Units int64        `json:"units"`
	At    cluster.Time `json:"at"`
}

// ReturnWish asks a loan to give units back now, and waits for the answer.
type ReturnWish struct {
	ReturnUnits
	Answer func(ReturnAnswer)
}

// ReturnUnits is the argument of the update `return`.
type ReturnUnits struct {
	// Units to give back; 0 means all that the loan has.
	Units int64  `json:"units"`
	By    string `json:"by"`
}

// ReturnAnswer answers an operator's wish: the units that go back, or why none do.
type ReturnAnswer struct {
	Units   int64  `json:"units"`
	Refused string `json:"refused,omitempty"`
}

func (a ReturnAnswer) refusal() string { return a.Refused }

func (a HostAnswer) refusal() string { return a.Refused }

// Summary is how a story stands, for people.
type Summary struct {
	State string
	Units int64
	// Waits says what the story waits for.
	Waits string
	// Title is one line, Details are lines of Markdown.
	Title   string
	Details []string
}
