package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"xce.internal/elastic/providers"
)

// errFail: a failure that XCE_POOL_FAIL asked for.
var errFail = errors.New("XCE_POOL_FAIL: acted, and now fails as asked")

const longestName = 200 // bytes

// settings is what the environment says.
type settings struct {
	file        poolFile
	cluster     string
	observeFile string

	latency, pending time.Duration
	failEvery        int64
	maxRequest       int64 // units; 0 = no limit
	call             int64 // the number of this call, when calls are counted
}

func settingsFromEnvironment() (*settings, error) {
	path, cluster := os.Getenv("XCE_POOL_FILE"), os.Getenv("XCE_POOL_CLUSTER")
	if path == "" || cluster == "" {
		return nil, errors.New("XCE_POOL_FILE and XCE_POOL_CLUSTER must be set: to the pool file, and to the name of the cluster that asks")
	}
	if len(cluster) > longestName {
		return nil, fmt.Errorf("XCE_POOL_CLUSTER is %d bytes long: give a name of at most %d", len(cluster), longestName)
	}
	s := &settings{cluster: cluster, observeFile: os.Getenv("XCE_POOL_OBSERVE_FILE")}
	latency, latencyErr := wholeNumber("XCE_POOL_LATENCY_MS")
	delay, delayErr := wholeNumber("XCE_POOL_PENDING_MS")
	failEvery, failErr := wholeNumber("XCE_POOL_FAIL")
	maxRequest, maxErr := wholeNumber("XCE_POOL_MAX_REQUEST")
	file, fileErr := openFile(path)
	s.latency, s.pending = time.Duration(latency)*time.Millisecond, time.Duration(delay)*time.Millisecond
	s.failEvery, s.maxRequest, s.file = failEvery, maxRequest, file
	return s, errors.Join(latencyErr, delayErr, failErr, maxErr, fileErr)
}

func wholeNumber(name string) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 || number > 1e9 {
		return 0, fmt.Errorf("%s=%q: give a whole number from 0 to 1000000000, or unset it", name, text)
	}
	return number, nil
}

// misbehave does after the deed what the try-out settings ask for.
func (s *settings) misbehave(ctx context.Context) error {
	select {
	case <-time.After(s.latency):
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.failEvery > 0 && s.call%s.failEvery == 0 {
		return errFail
	}
	return nil
}

// contractVerbs act on the pool and answer; each gets what stood on stdin.
var contractVerbs = map[providers.Verb]func(s *settings, input []byte, now time.Time) (any, error){
	providers.VerbDescribe: func(s *settings, input []byte, now time.Time) (any, error) {
		description := providers.Description{}
		err := s.look(providers.VerbDescribe, input, &struct{}{}, now, func(p *pool) {
			description = p.describe(s.cluster)
			description.Observe = s.observeFile != ""
			for i := range description.Offers {
				description.Offers[i].MaxRequest = s.maxRequest
			}
		})
		return description, err
	},
	providers.VerbList: func(s *settings, input []byte, now time.Time) (any, error) {
		out := providers.ListOut{}
		err := s.look(providers.VerbList, input, &struct{}{}, now, func(p *pool) { out = p.list(s.cluster) })
		return out, err
	},
	providers.VerbStatus: func(s *settings, input []byte, now time.Time) (any, error) {
		in, out := providers.StatusIn{}, providers.StatusOut{}
		err := s.look(providers.VerbStatus, input, &in, now, func(p *pool) { out = p.status(s.cluster, in) })
		return out, err
	},
	providers.VerbRequest: func(s *settings, input []byte, now time.Time) (any, error) {
		in, out := providers.RequestIn{}, providers.RequestOut{}
		err := s.change(providers.VerbRequest, input, &in, now, func(p *pool) (err error) {
			out, err = p.request(s.cluster, in, now, s.pending)
			return err
		})
		return out, err
	},
	providers.VerbReturn: func(s *settings, input []byte, now time.Time) (any, error) {
		in, out := providers.ReturnIn{}, providers.ReturnOut{}
		err := s.change(providers.VerbReturn, input, &in, now, func(p *pool) (err error) {
			out, err = p.giveBack(s.cluster, in, now)
			return err
		})
		return out, err
	},
	providers.VerbObserve: observe,
}

// look answers from the pool as it is now; it writes nothing, unless calls are counted.
func (s *settings) look(verb providers.Verb, input []byte, in any, now time.Time, see func(*pool)) error {
	if s.failEvery > 0 {
		return s.change(verb, input, in, now, func(p *pool) error { see(p); return nil })
	}
	if err := providers.ParseIn(verb, input, in); err != nil {
		return refusalError{err}
	}
	p, err := s.file.read()
	if err != nil {
		return err
	}
	p.advance(now)
	see(p)
	return nil
}

func (s *settings) change(verb providers.Verb, input []byte, in any, now time.Time, act func(*pool) error) error {
	if err := providers.ParseIn(verb, input, in); err != nil {
		return refusalError{err}
	}
	return s.file.change(func(p *pool) error {
		if s.failEvery > 0 {
			p.Calls++
			s.call = p.Calls
		}
		p.advance(now)
		return act(p)
	})
}

// observe answers from the observe file, for the resources of the pool.
func observe(s *settings, input []byte, now time.Time) (any, error) {
	if s.observeFile == "" {
		return nil, refusalError{errors.New("nothing to observe: XCE_POOL_OBSERVE_FILE is not set")}
	}
	out := providers.ObserveOut{Observations: []providers.Observation{}}
	counts, at, err := readCounts(s.observeFile)
	if err != nil {
		return nil, err
	}
	err = s.look(providers.VerbObserve, input, &struct{}{}, now, func(p *pool) {
		for _, r := range p.Resources {
			if count, counted := counts[r.Name]; counted {
				out.Observations = append(out.Observations, providers.Observation{
					Resource: r.Name, InUse: count.InUse, Total: count.Total, At: at,
				})
			}
		}
	})
	return out, err
}

type count struct {
	InUse int64  `json:"in_use"`
	Total *int64 `json:"total"`
}

func readCounts(path string) (map[string]count, time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("observe file: %w: correct XCE_POOL_OBSERVE_FILE", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("observe file: %w", err)
	}
	counts := map[string]count{}
	if err := json.Unmarshal(text, &counts); err != nil {
		return nil, time.Time{}, fmt.Errorf("observe file %s: %w: it must look like {\"vcs\":{\"in_use\":3}}", path, err)
	}
	return counts, info.ModTime().UTC(), nil
}
