// Package workflows holds the stories of providers, loans and hosts, and their
// binding to Temporal.
//
// A story ([Loan.Live], [Host.Live], [Provider.Live]) is a plain function of its
// state and an environment ([LoanEnv], [HostEnv], [ProviderEnv]): what time it is,
// wait for a message until then, and the story's own named steps. It is written once, straight
// through. Business outcomes (refused, partial, unknown, not yet) are answered
// in the story, so they happen alike wherever it runs; faults of the
// infrastructure never reach it.
//
// Temporal runs the stories live ([LoanWorkflow], [HostWorkflow], [ProviderWorkflow]): steps are
// activities, waiting is a durable timer, state is carried over when a history
// grows long.
package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// Names under which the workflows are registered, and what they listen to.
// They are part of recorded histories.
const (
	ProviderName = "provider"
	LoanName     = "loan"
	HostName     = "host"

	// SignalDemand tells a provider that its demand changed.
	SignalDemand = "demand"
	// SignalCatalogChanged tells a provider that what it lends has changed; it
	// carries the id of the loan that did it, or nothing.
	SignalCatalogChanged = "catalog-changed"
	// SignalRecalled tells a loan what of it the lender wants back.
	SignalRecalled = "recalled"
	// SignalCheck tells a loan or host that the provider's list differs from its books.
	SignalCheck = "check"
	// SignalBelieve has a provider's story take its next list of hosts at its word.
	SignalBelieve = "believe"
	// SignalJoined tells a host that it has joined, SignalEmptied that the last job
	// on it is done, SignalHealth how it answers, and SignalReclaimed that its
	// provider takes it.
	SignalJoined    = "joined"
	SignalEmptied   = "emptied"
	SignalHealth    = "lost"
	SignalReclaimed = "reclaimed"

	// UpdateReturn is an operator's wish to give units back now.
	UpdateReturn = "return"

	QueryLoan  = "loan"
	QueryHost  = "host"
	QueryState = "state"
)

// Task queues. Any provisioner polls these.
const (
	QueueWorkflows = "xce-workflows"
	// QueueController is for what asks the controller, and starts workflows.
	QueueController = "xce-controller"
)

// QueueProvider is the task queue of one provider's scripts. Who holds the
// provider's lease polls it, and no one else.
func QueueProvider(provider string) string { return "xce-provider-" + provider }

// QueueUpdates is the task queue of the changes that the controller is told of
// for one provider. Who holds the provider's lease polls it, and no one else.
func QueueUpdates(provider string) string { return QueueController + "-" + provider }

// ProviderID is the workflow id of a provider.
func ProviderID(provider string) string { return "provider/" + provider }

// LoanID is the workflow id of the n-th loan of a resource from a provider.
func LoanID(resource, provider string, n int64) string {
	return fmt.Sprintf("loan/%s/%s-%d", resource, provider, n)
}

// HostUpdate is an operator's wish for a host, under the name of its update.
type HostUpdate string

// Updates of a host.
const (
	UpdateDrain   HostUpdate = "drain"   // no new jobs; gone when it is empty
	UpdateUndrain HostUpdate = "undrain" // open again
	UpdateHold    HostUpdate = "hold"    // stays, idle or not
	UpdateRelease HostUpdate = "release" // may go again
	UpdateGone    HostUpdate = "gone"    // the machine is no more: its jobs wait again
)

// HostUpdates lists them.
var HostUpdates = []HostUpdate{UpdateDrain, UpdateUndrain, UpdateHold, UpdateRelease, UpdateGone}

// HostID is the workflow id of the n-th host of a template.
func HostID(template string, n int64) string { return fmt.Sprintf("host/%s-%d", template, n) }

// Search attributes of all workflows.
var (
	AttributeKind     = temporal.NewSearchAttributeKeyKeyword("XceKind")
	AttributeProvider = temporal.NewSearchAttributeKeyKeyword("XceProvider")
	AttributeResource = temporal.NewSearchAttributeKeyKeyword("XceResource")
	AttributeState    = temporal.NewSearchAttributeKeyKeyword("XceState")
	AttributeUnits    = temporal.NewSearchAttributeKeyInt64("XceUnits")
)

// SearchAttributes lists the attributes a Temporal namespace must have, as NAME=TYPE.
var SearchAttributes = []string{"XceKind=Keyword", "XceProvider=Keyword", "XceResource=Keyword", "XceState=Keyword", "XceUnits=Int"}
