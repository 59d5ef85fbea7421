package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
)

// settings is what the environment says.
type settings struct {
	file        poolFile
	cluster     string
	observeFile string

	pending    time.Duration
	maxRequest int64 // units; 0 = no limit
	dialogue.Misbehaviour
}

func settingsFromEnvironment() (*settings, error) {
	path, cluster := os.Getenv("XCE_POOL_FILE"), os.Getenv("XCE_POOL_CLUSTER")
	if path == "" || cluster == "" {
		return nil, errors.New("XCE_POOL_FILE and XCE_POOL_CLUSTER must be set: to the pool file, and to the name of the cluster that asks")
	}
	if len(cluster) > dialogue.LongestName {
		return nil, fmt.Errorf("XCE_POOL_CLUSTER is %d bytes long: give a name of at most %d", len(cluster), dialogue.LongestName)
	}
	s := &settings{cluster: cluster, observeFile: os.Getenv("XCE_POOL_OBSERVE_FILE")}
	var misbehaviourErr, delayErr, maxErr, fileErr error
	s.Misbehaviour, misbehaviourErr = dialogue.MisbehaviourOf("XCE_POOL")
	s.pending, delayErr = dialogue.Milliseconds("XCE_POOL_PENDING_MS")
	s.maxRequest, maxErr = dialogue.Number("XCE_POOL_MAX_REQUEST")
	s.file, fileErr = openFile(path)
	return s, errors.Join(misbehaviourErr, delayErr, maxErr, fileErr)
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
	if s.FailEvery > 0 {
		return s.change(verb, input, in, now, func(p *pool) error { see(p); return nil })
	}
	if err := providers.ParseIn(verb, input, in); err != nil {
		return dialogue.Refuse(err)
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
		return dialogue.Refuse(err)
	}
	return s.file.change(func(p *pool) error {
		s.Count(&p.Calls)
		p.advance(now)
		return act(p)
	})
}

// observe answers from the observe file, for the resources of the pool.
func observe(s *settings, input []byte, now time.Time) (any, error) {
	if s.observeFile == "" {
		return nil, dialogue.Refuse(errors.New("nothing to observe: XCE_POOL_OBSERVE_FILE is not set"))
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
