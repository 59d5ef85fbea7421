package farm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/statefile"
)

// listModes are what list may answer.
var listModes = []string{"good", "fail", "empty", "cut"}

// settings is what the environment says.
type settings struct {
	kind    Kind
	file    statefile.File
	here    *here
	cluster string
	pending time.Duration
	list    string
	dialogue.Misbehaviour
}

func (k Kind) settings() (*settings, error) {
	folder, cluster := os.Getenv(k.Variable("FOLDER")), os.Getenv(k.Variable("CLUSTER"))
	if folder == "" || cluster == "" {
		return nil, fmt.Errorf("%s and %s must be set: to the folder that %s init made, and the name of the cluster that asks",
			k.Variable("FOLDER"), k.Variable("CLUSTER"), k.Name)
	}
	if len(cluster) > dialogue.LongestName {
		return nil, fmt.Errorf("%s is %d bytes long: give a name of at most %d", k.Variable("CLUSTER"), len(cluster), dialogue.LongestName)
	}
	s := &settings{kind: k, cluster: cluster, list: os.Getenv(k.Variable("LIST"))}
	var fileErr, hostsErr, misbehaviourErr, pendingErr, listErr error
	s.file, s.here, fileErr = k.open(folder)
	if fileErr != nil {
		return nil, fileErr
	}
	s.here.hosts, hostsErr = k.Hosts()
	s.Misbehaviour, misbehaviourErr = dialogue.MisbehaviourOf(k.prefix())
	s.pending, pendingErr = dialogue.Milliseconds(k.Variable("PENDING_MS"))
	if s.list != "" && !slices.Contains(listModes, s.list) {
		listErr = fmt.Errorf("%s=%q: give one of %v, or unset it", k.Variable("LIST"), s.list, listModes)
	}
	return s, errors.Join(hostsErr, misbehaviourErr, pendingErr, listErr)
}

func (k Kind) open(folder string) (statefile.File, *here, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return statefile.File{}, nil, err
	}
	file, err := statefile.Open(k.Name, filepath.Join(folder, k.stateName()))
	return file, &here{kind: k, folder: folder}, err
}

// contractVerbs act on the farm and answer; each gets what stood on stdin.
var contractVerbs = map[providers.Verb]func(s *settings, input []byte, now time.Time) (any, error){
	providers.VerbDescribe: func(s *settings, input []byte, now time.Time) (any, error) {
		out := providers.Description{}
		err := s.look(providers.VerbDescribe, input, &struct{}{}, now, func(f *farm) { out = f.describe(s.cluster, now) })
		out.Name = s.kind.Name
		return out, err
	},
	providers.VerbList: list,
	providers.VerbStatus: func(s *settings, input []byte, now time.Time) (any, error) {
		in, out := providers.StatusIn{}, providers.StatusOut{}
		err := s.look(providers.VerbStatus, input, &in, now, func(f *farm) { out = f.status(s.cluster, in) })
		return out, err
	},
	providers.VerbRequest: func(s *settings, input []byte, now time.Time) (any, error) {
		in, out := providers.RequestIn{}, providers.RequestOut{}
		err := s.change(providers.VerbRequest, input, &in, now, func(f *farm) (err error) {
			out, err = f.request(s.cluster, in, now, s.pending, s.here)
			return err
		})
		return out, err
	},
	providers.VerbReturn: giveBack,
}

// giveBack notes first that the host is to end, and then kills it: its processes may be gone only when
// nothing would start them again.
func giveBack(s *settings, input []byte, now time.Time) (any, error) {
	in, out := providers.ReturnIn{}, providers.ReturnOut{}
	ask := func(f *farm) (err error) {
		out, err = f.giveBack(s.cluster, in, now, s.here)
		return err
	}
	err := s.change(providers.VerbReturn, input, &in, now, ask)
	if err != nil || out.Status != providers.StatusPending {
		return out, err
	}
	err = s.tended(now, ask)
	return out, err
}

func list(s *settings, input []byte, now time.Time) (any, error) {
	out, mode := providers.ListOut{}, s.list
	err := s.look(providers.VerbList, input, &struct{}{}, now, func(f *farm) {
		out = f.list(s.cluster)
		if mode == "" {
			mode = f.List
		}
	})
	if err != nil {
		return nil, err
	}
	switch mode {
	case "fail":
		return nil, errors.New("list fails, as asked")
	case "empty":
		return providers.ListOut{Grants: []providers.Grant{}}, nil
	case "cut":
		text, err := json.Marshal(out)
		return dialogue.Raw(text[:len(text)/2]), err
	}
	return out, nil
}

// look answers from the farm as it is now; it writes nothing, unless there is something to tend or calls are
// counted.
func (s *settings) look(verb providers.Verb, input []byte, in any, now time.Time, see func(*farm)) error {
	if s.FailEvery > 0 {
		return s.change(verb, input, in, now, func(f *farm) error { see(f); return nil })
	}
	if err := providers.ParseIn(verb, input, in); err != nil {
		return dialogue.Refuse(err)
	}
	f := new(farm)
	if err := s.file.Read(f); err != nil {
		return err
	}
	if f.untended(now, s.here) {
		return s.tended(now, func(f *farm) error { see(f); return nil })
	}
	see(f)
	return nil
}

func (s *settings) change(verb providers.Verb, input []byte, in any, now time.Time, act func(*farm) error) error {
	if err := providers.ParseIn(verb, input, in); err != nil {
		return dialogue.Refuse(err)
	}
	return s.tended(now, func(f *farm) error {
		s.Count(&f.Calls)
		return act(f)
	})
}

// tended lets act change the farm after it was tended. Agents that were started begin when the change is
// kept; or end, when it is not.
func (s *settings) tended(now time.Time, act func(*farm) error) error {
	f := new(farm)
	err := s.file.Change(f, func() error {
		f.tend(now, s.here)
		return act(f)
	})
	s.here.release(err == nil)
	return err
}
