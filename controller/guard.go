package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"xce.internal/elastic/controller/limit"
	"xce.internal/elastic/controller/pki"
)

// callerOf answers who is counted for a call.
func callerOf(r *http.Request, peer pki.Peer, err error) limit.Peer {
	if err != nil {
		return limit.Peer{Name: limit.Address(r.RemoteAddr), Stranger: true}
	}
	return limit.Peer{Name: peer.String()}
}

// callerKey is where a request's context keeps who is counted for it.
type callerKey struct{}

// admit counts a call until done is called, or refuses it with an answer.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, caller limit.Peer) (_ *http.Request, done func(), ok bool) {
	done, refusal := s.guard.Enter(caller)
	if refusal != nil {
		writeProblem(w, http.StatusTooManyRequests, refusal.Why+"; wait as long as Retry-After says", retryHeader(refusal))
		return r, nil, false
	}
	if err := soundURL(r.URL); err != nil {
		done()
		writeProblem(w, http.StatusBadRequest, err.Error(), "")
		return r, nil, false
	}
	return r.WithContext(context.WithValue(r.Context(), callerKey{}, caller)), done, true
}

// hold counts a call that waits for news, and limits its wait.
func (s *Server) hold(ctx context.Context, p Poll) (wait context.Context, done context.CancelFunc, err error) {
	caller, _ := ctx.Value(callerKey{}).(limit.Peer)
	end := func() {}
	if p.WaitMS > 0 {
		var refusal *limit.Refusal
		if end, refusal = s.guard.Poll(caller); refusal != nil {
			busy := huma.ErrorWithHeaders(huma.NewError(http.StatusTooManyRequests, refusal.Why+"; wait as long as Retry-After says"),
				http.Header{"Retry-After": {retryHeader(refusal)}})
			return nil, nil, busy
		}
	}
	wait, cancel := p.context(ctx)
	return wait, func() { cancel(); end() }, nil
}

// retryHeader answers whole seconds, at least one.
func retryHeader(r *limit.Refusal) string {
	return strconv.Itoa(max(int(math.Ceil(r.After.Seconds())), 1))
}

// writeProblem answers as the routes do where none of them is reached.
func writeProblem(w http.ResponseWriter, status int, detail, retryAfter string) {
	w.Header().Set("Content-Type", "application/problem+json")
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(status)
	// Who does not listen any more need not be told.
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail})
}

// tooLong is the answer where a call took longer than any may.
func (s *Server) tooLong() error {
	return huma.NewError(http.StatusServiceUnavailable, fmt.Sprintf("it took longer than %s, as the controller is busy; try again", s.limits.Time))
}

// longestWaitOf answers how long a call may wait for news beside its work.
func longestWaitOf(in any) time.Duration {
	if _, waits := in.(interface {
		context(context.Context) (context.Context, context.CancelFunc)
	}); waits {
		return longestWait
	}
	return 0
}
