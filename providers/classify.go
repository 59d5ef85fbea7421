package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// textLimit bounds what is kept of a script's words, as they go into workflow histories.
const textLimit = 4 << 10

// Execution is what came of executing a script once.
type Execution struct {
	Stdout  []byte
	Exit    int // exit status; -1 when a signal ended the script or it never ran
	Elapsed time.Duration
	// Err says why the call did not run to its own end: never started, time limit, output limit,
	// cancelled, or never asked (a *MalformedError). Nil when the script ended by itself.
	Err error
}

// MalformedError: a question that does not keep the contract. It is never put to the script.
type MalformedError struct{ Err error }

func (e *MalformedError) Error() string { return "not asked: " + e.Err.Error() }

func (e *MalformedError) Unwrap() error { return e.Err }

// ClassifyDescribe reads the answer to describe. It is pure, as are all the Classify functions.
func ClassifyDescribe(run Execution) (Description, Outcome) {
	return decode(VerbDescribe, "", run, func(d Description) error {
		return errors.Join(
			once("offers", d.Offers, func(o Offer) string { return o.Resource }),
			once("recalls", d.Recalls, func(r Recall) string { return r.RequestID }),
			once("quotas", d.Quotas, func(q Quota) string { return q.Name }),
			soundTemplates(d))
	})
}

// ClassifyRequest reads the answer to a request. Whether it is ok or partial is decided by the numbers,
// not by the script's word for it. More than was asked is ok: the units are there and must be given back.
func ClassifyRequest(in RequestIn, run Execution) (RequestOut, Outcome) {
	out, outcome := decode(VerbRequest, in.RequestID, run, func(o RequestOut) error {
		return errors.Join(sameID(o.RequestID, in.RequestID), newRoster().add("", in.Template != "", o.Granted, o.Instances))
	})
	if outcome.Status == StatusOK {
		outcome = outcome.told(out.Status, out.Message, out.RetryAfter)
		if out.Status != StatusPending {
			outcome.Status = complete(out.Granted >= in.Units)
		}
	}
	return RequestOut{
		RequestID: in.RequestID, Granted: out.Granted, Instances: out.Instances, Message: clip(out.Message),
		Status: outcome.Status, Reason: outcome.Reason, RetryAfter: outcome.RetryAfter,
	}, outcome
}

// ClassifyStatus reads the answer to status: exactly the requests asked for, each once. Whether a request
// was for hosts only its caller knows, so instances may be missing here as a whole.
func ClassifyStatus(in StatusIn, run Execution) (StatusOut, Outcome) {
	out, outcome := decode(VerbStatus, "", run, func(o StatusOut) error {
		return errors.Join(sameRequests(o.Requests, in.RequestIDs), oneRequestPerInstance(o.Requests))
	})
	for i := range out.Requests {
		out.Requests[i].Message = clip(out.Requests[i].Message)
	}
	return out, outcome
}

// ClassifyReturn reads the answer to a return. It is ok when no more than the target is still lent. Less
// is ok too: a return never raises what is lent, so a late repeated one finds less.
func ClassifyReturn(in ReturnIn, run Execution) (ReturnOut, Outcome) {
	out, outcome := decode(VerbReturn, in.RequestID, run, func(o ReturnOut) error {
		return sameID(o.RequestID, in.RequestID)
	})
	if outcome.Status == StatusOK {
		outcome = outcome.told(out.Status, out.Message, out.RetryAfter)
		if out.Status != StatusPending {
			outcome.Status = complete(out.Remaining <= in.Remaining)
		}
	}
	return ReturnOut{
		RequestID: in.RequestID, Remaining: out.Remaining, Message: clip(out.Message),
		Status: outcome.Status, Reason: outcome.Reason, RetryAfter: outcome.RetryAfter,
	}, outcome
}

// ClassifyList reads the answer to list: each grant once, and each instance in one grant.
func ClassifyList(run Execution) (ListOut, Outcome) {
	return decode(VerbList, "", run, func(o ListOut) error {
		return errors.Join(once("grants", o.Grants, func(g Grant) string { return g.RequestID }), oneGrantPerInstance(o.Grants))
	})
}

// ClassifyObserve reads the answer to observe: each resource once.
func ClassifyObserve(run Execution) (ObserveOut, Outcome) {
	return decode(VerbObserve, "", run, func(o ObserveOut) error {
		return once("observations", o.Observations, func(o Observation) string { return o.Resource })
	})
}

// decode reads an answer against its schema and the rules a schema cannot say. On anything but ok the
// answer is empty: nobody shall act on half of one.
func decode[T any](verb Verb, asked string, run Execution, rules func(T) error) (T, Outcome) {
	var none T
	var malformed *MalformedError
	if errors.As(run.Err, &malformed) {
		return none, Outcome{Status: StatusRefused, Reason: ReasonInvalid, Message: clip(malformed.Error())}
	}
	if run.Err != nil {
		return none, run.unknown(run.Err)
	}
	document, err := parse(run.Stdout)
	if err != nil {
		return none, run.unknown(fmt.Errorf("answer to %s: %w", verb, err))
	}
	if status := document["status"]; status == string(StatusRefused) || status == string(StatusUnknown) {
		return none, run.refusal(verb, asked, document)
	}
	answer, err := read(run.Stdout, document, string(verb)+".out.json", rules)
	if err != nil {
		return none, run.unknown(fmt.Errorf("answer to %s: %w", verb, err))
	}
	return answer, Outcome{Status: StatusOK, Message: run.note()}
}

func read[T any](text []byte, document any, schema string, rules func(T) error) (T, error) {
	var answer, none T
	if err := validate(schema, document); err != nil {
		return none, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return none, err
	}
	if err := rules(answer); err != nil {
		return none, err
	}
	return answer, nil
}

func (run Execution) refusal(verb Verb, asked string, document any) Outcome {
	refusal, err := read(run.Stdout, document, "refusal.json", func(r Refusal) error {
		if r.RequestID == "" {
			return nil // a script that could not read its input cannot repeat the id
		}
		return sameID(r.RequestID, asked)
	})
	if err != nil {
		return run.unknown(fmt.Errorf("answer to %s: %w", verb, err))
	}
	outcome := Outcome{Message: run.note(), Reason: refusal.Reason, Text: clip(string(run.Stdout))}
	return outcome.told(refusal.Status, refusal.Message, refusal.RetryAfter)
}

func (run Execution) unknown(err error) Outcome {
	message := join(err.Error(), run.note())
	return Outcome{Status: StatusUnknown, Message: clip(message), Text: clip(string(run.Stdout))}
}

// note mentions an exit status that is not 0. It decides nothing: the answer does.
func (run Execution) note() string {
	switch {
	case run.Err != nil || run.Exit == 0:
		return ""
	case run.Exit < 0:
		return "a signal ended the script"
	}
	return fmt.Sprintf("exit status %d", run.Exit)
}

// told adds what the script said to what the execution showed.
func (o Outcome) told(status Status, message string, retryAfter int64) Outcome {
	o.Status, o.RetryAfter = status, retryAfter
	o.Message = clip(join(message, o.Message))
	return o
}

func join(message, note string) string {
	switch {
	case note == "":
		return message
	case message == "":
		return note
	}
	return message + " (" + note + ")"
}

func complete(all bool) Status {
	if all {
		return StatusOK
	}
	return StatusPartial
}

func sameID(got, asked string) error {
	if got != asked {
		return fmt.Errorf("at /request_id: %q answers another request than %q: repeat the id that was asked", got, asked)
	}
	return nil
}

func sameRequests(got []RequestState, asked []string) error {
	missing := make(map[string]bool, len(asked))
	for _, id := range asked {
		missing[id] = true
	}
	for i, request := range got {
		if !missing[request.RequestID] {
			return fmt.Errorf("at /requests/%d: %q was not asked for, or stands there twice", i, request.RequestID)
		}
		delete(missing, request.RequestID)
	}
	for _, id := range asked {
		if missing[id] {
			return fmt.Errorf("at /requests: %q is missing: answer every id asked, with status unknown if there is no such request", id)
		}
	}
	return nil
}

func once[T any](place string, elements []T, key func(T) string) error {
	seen := make(map[string]bool, len(elements))
	for i, element := range elements {
		if seen[key(element)] {
			return fmt.Errorf("at /%s/%d: %q stands there twice: one entry each", place, i, key(element))
		}
		seen[key(element)] = true
	}
	return nil
}

// clip keeps the beginning, whole characters only.
func clip(text string) string {
	if len(text) <= textLimit {
		return text
	}
	end := textLimit
	for end > textLimit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.Clone(text[:end])
}
