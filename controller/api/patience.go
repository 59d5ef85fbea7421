package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// patience is how long a call that is one too many is put off altogether before
// the caller is told. Each pause is what the controller says, within reason.
const (
	patience     = time.Minute
	leastPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// call does one request; in and out may be nil. Where the controller says that
// the caller asks too much, it waits as it is told, and asks again: such a call
// was not looked at, so that it can be repeated whatever it is.
func (c *Client) call(ctx context.Context, r Route, path string, query url.Values, in, out any) error {
	for waited := time.Duration(0); ; {
		err := c.once(ctx, r, path, query, in, out)
		var busy *Error
		if !errors.As(err, &busy) || busy.Status != http.StatusTooManyRequests || waited >= patience {
			return err
		}
		pause := min(max(busy.RetryAfter, leastPause), longestPause)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			waited += pause
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// retryAfter reads how long to wait; HTTP has it in seconds or as a date, of
// which the controller uses the former.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseInt(h.Get("Retry-After"), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
