package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
)

// addresses are where the controllers of one cluster are reached. Calls go to the
// one that answered last.
type addresses struct {
	all     []string
	current atomic.Int64
}

// newAddresses reads one address or several, with commas between them.
func newAddresses(list string) *addresses {
	a := &addresses{}
	for _, address := range SplitAddresses(list) {
		a.all = append(a.all, strings.TrimSuffix(address, "/"))
	}
	if len(a.all) == 0 {
		a.all = []string{""} // which every call refuses
	}
	return a
}

// SplitAddresses answers the addresses of a list with commas between them.
func SplitAddresses(list string) []string {
	var all []string
	for _, address := range strings.Split(list, ",") {
		if address = strings.TrimSpace(address); address != "" {
			all = append(all, address)
		}
	}
	return all
}

// now answers the address to call, and its number.
func (a *addresses) now() (string, int64) {
	n := a.current.Load()
	return a.all[n%int64(len(a.all))], n
}

// leave has calls go to the next address, unless another call has seen to that.
func (a *addresses) leave(n int64) { a.current.CompareAndSwap(n, n+1) }

// elsewhere tells whether another controller may answer a call that failed, and
// whether it may be asked at once: not where this one may have carried it out,
// and twice is not the same as once.
func elsewhere(ctx context.Context, r Route, err error) (another, atOnce bool) {
	var answer *Error
	var dial *net.OpError
	var transport *url.Error
	switch {
	case ctx.Err() != nil:
		return false, false
	case errors.As(err, &answer):
		another = answer.Status == http.StatusServiceUnavailable || answer.Foreign && answer.Status >= 500
		return another, another && !answer.Foreign // it was not carried out
	case errors.As(err, &dial) && dial.Op == "dial":
		return true, true
	case errors.As(err, &transport):
		return true, r.Method == http.MethodGet || r.Method == http.MethodPut
	}
	return false, false
}
