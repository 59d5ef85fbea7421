package timeskip

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// ErrNotAnswered is the error of an update that has not been answered yet.
var ErrNotAnswered = errors.New("update has not been answered")

// An Update is one update sent to a workflow, with its answer when there is one.
type Update struct {
	Workflow, ID, Name string

	h        *Harness
	accepted bool
	answered bool
	err      error
	result   converter.RawValue
	then     []func()
}

// Accepted says whether the validator let it pass.
func (u *Update) Accepted() bool { return u.accepted }

// Answered says whether it was refused or has completed.
func (u *Update) Answered() bool { return u.answered }

// Result decodes the answer; valuePtr may be nil. The error is the refusal of the validator, the
// failure of the handler, or ErrNotAnswered.
func (u *Update) Result(valuePtr any) error {
	switch {
	case !u.answered:
		return ErrNotAnswered
	case u.err != nil || valuePtr == nil:
		return u.err
	default:
		return converter.GetDefaultDataConverter().FromPayload(u.result.Payload(), valuePtr)
	}
}

// Then calls f when the answer is there. f runs in the midst of the workflow's step: it
// may look and take notes, and use After for anything else.
func (u *Update) Then(f func()) {
	if u.answered {
		f()
		return
	}
	u.then = append(u.then, f)
}

// Update sends an update. The same id sent again while the run of the workflow lasts is
// the same update, unless it was refused.
func (h *Harness) Update(id, updateID, name string, args ...any) *Update {
	r := h.workflows[id]
	if r != nil {
		if u := r.updates[updateID]; u != nil && (u.accepted || !u.answered) {
			return u
		}
	}
	u := &Update{Workflow: id, ID: updateID, Name: name, h: h}
	if err := h.deliver(id, func() { u.send(args) }); err != nil {
		u.answer(nil, err)
		return u
	}
	r.updates[updateID] = u
	return u
}

func (u *Update) send(args []any) {
	err := u.h.env.UpdateWorkflowByID(u.Workflow, u.Name, u.h.updateKey(u.ID), updateCallbacks{u}, args...)
	if err != nil {
		u.answer(nil, err)
	}
}

// updateKey makes an id of its own for each update. The environment takes equal ids for the same
// update even when they go to different workflows, and never again answers one that it refused.
func (h *Harness) updateKey(id string) string {
	h.updatesSent++
	return fmt.Sprintf("%d %s", h.updatesSent, id)
}

// updateID is the id that an updateKey stands for.
func updateID(key string) string {
	_, id, _ := strings.Cut(key, " ")
	return id
}

// answer records the first answer.
func (u *Update) answer(success any, err error) {
	if u.answered {
		return
	}
	u.answered = true
	if u.err = asClientSees(err); u.err == nil {
		u.encode(success)
	}
	outcome := "completed"
	switch {
	case u.err != nil && !u.accepted:
		outcome = "refused: " + u.err.Error()
	case u.err != nil:
		outcome = "failed: " + u.err.Error()
	}
	u.note(outcome)
	for _, f := range u.then {
		f()
	}
	u.h.check()
}

func (u *Update) encode(success any) {
	payload, err := converter.GetDefaultDataConverter().ToPayload(success)
	if err != nil {
		u.err = fmt.Errorf("encode the result of update %s: %w", u.Name, err)
		return
	}
	u.result = converter.NewRawValue(payload)
}

func (u *Update) note(outcome string) {
	u.h.note(Event{Workflow: u.Workflow, Kind: KindUpdate, Name: u.Name + " " + u.ID, Outcome: outcome})
}

// abortUpdates answers those that the run leaves unanswered.
func (r *record) abortUpdates() {
	unanswered := serviceerror.NewNotFound("the run of the workflow ended before the update was answered")
	for _, id := range slices.Sorted(maps.Keys(r.updates)) {
		r.updates[id].answer(nil, unanswered)
	}
	clear(r.updates)
}

// asClientSees makes of a handler's error what a client would get.
func asClientSees(err error) error {
	var notFound *serviceerror.NotFound
	if err == nil || errors.As(err, &notFound) {
		return err
	}
	failures := temporal.GetDefaultFailureConverter()
	return failures.FailureToError(failures.ErrorToFailure(err))
}

type updateCallbacks struct{ u *Update }

func (c updateCallbacks) Accept() {
	c.u.accepted = true
	c.u.note("accepted")
}

func (c updateCallbacks) Reject(err error) { c.u.answer(nil, err) }

func (c updateCallbacks) Complete(success any, err error) { c.u.answer(success, err) }
