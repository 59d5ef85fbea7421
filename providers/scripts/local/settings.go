package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"xce.internal/elastic/providers"
	"xce.internal/elastic/providers/scripts/dialogue"
	"xce.internal/elastic/providers/scripts/statefile"
)

// stateName is that of the state file in the folder.
const stateName = "local.json"

// listModes are what list may answer.
var listModes = []string{"good", "fail", "empty", "cut"}

// settings is what the environment says.
type settings struct {
	file    statefile.File
	here    *here
	cluster string
	pending time.Duration
	list    string
	dialogue.Misbehaviour
}

func settingsFromEnvironment() (*settings, error) {
	folder, cluster, agent := os.Getenv("XCE_LOCAL_FOLDER"), os.Getenv("XCE_LOCAL_CLUSTER"), os.Getenv("XCE_LOCAL_AGENT")
	if folder == "" || cluster == "" || agent == "" {
		return nil, errors.New("XCE_LOCAL_FOLDER, XCE_LOCAL_CLUSTER and XCE_LOCAL_AGENT must be set: " +
			"to the folder that local init made, the name of the cluster that asks, and the path of xce-elastic")
	}
	if len(cluster) > dialogue.LongestName {
		return nil, fmt.Errorf("XCE_LOCAL_CLUSTER is %d bytes long: give a name of at most %d", len(cluster), dialogue.LongestName)
	}
	s := &settings{cluster: cluster, list: os.Getenv("XCE_LOCAL_LIST")}
	var fileErr, agentErr, misbehaviourErr, pendingErr, listErr error
	s.file, s.here, fileErr = openFolder(folder)
	if fileErr != nil {
		return nil, fileErr
	}
	s.here.agent, agentErr = program(agent)
	s.Misbehaviour, misbehaviourErr = dialogue.MisbehaviourOf("XCE_LOCAL")
	s.pending, pendingErr = dialogue.Milliseconds("XCE_LOCAL_PENDING_MS")
	names, namesErr := dialogue.Number("XCE_LOCAL_NAMES")
	s.here.giveNames = names > 0
	if s.list != "" && !slices.Contains(listModes, s.list) {
		listErr = fmt.Errorf("XCE_LOCAL_LIST=%q: give one of %v, or unset it", s.list, listModes)
	}
	return s, errors.Join(agentErr, misbehaviourErr, pendingErr, namesErr, listErr)
}

func openFolder(folder string) (statefile.File, *here, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return statefile.File{}, nil, err
	}
	file, err := statefile.Open("local", filepath.Join(folder, stateName))
	return file, &here{folder: folder}, err
}

func program(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = unix.Access(path, unix.X_OK)
	}
	if err != nil {
		return "", fmt.Errorf("XCE_LOCAL_AGENT=%s: %w: give the path of xce-elastic", path, err)
	}
	return path, nil
}

// contractVerbs act on the farm and answer; each gets what stood on stdin.
var contractVerbs = map[providers.Verb]func(s *settings, input []byte, now time.Time) (any, error){
	providers.VerbDescribe: func(s *settings, input []byte, now time.Time) (any, error) {
		out := providers.Description{}
		err := s.look(providers.VerbDescribe, input, &struct{}{}, now, func(f *farm) { out = f.describe(s.cluster, now) })
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
