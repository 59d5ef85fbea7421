package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"xce.internal/elastic/cluster"
)

const (
	historyFolder = "histories"
	historyEnd    = ".json.gz"
	indexName     = "index.json"

	historyFormat  = "xce-histories"
	historyVersion = 1
)

// Index says what a folder of histories is.
type Index struct {
	Format  string `json:"format"`
	Version int64  `json:"version"`
	// Release is the version of the program that downloaded them.
	Release   string       `json:"release,omitempty"`
	Namespace string       `json:"namespace"`
	Recorded  cluster.Time `json:"recorded"`
}

// Histories writes histories of workflows into the folder of a record.
type Histories struct{ folder string }

// NewHistories makes the folder. It refuses one that has histories already: some of them might be gone from Temporal
// meanwhile, and others have grown.
func NewHistories(folder string, i Index) (*Histories, error) {
	h := &Histories{filepath.Join(folder, historyFolder)}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(h.folder, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			return nil, fmt.Errorf("%s is there already; name another folder, or remove it", h.folder)
		}
		return nil, err
	}
	i.Format, i.Version = historyFormat, historyVersion
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, err
	}
	return h, os.WriteFile(filepath.Join(h.folder, indexName), append(text, '\n'), 0o600)
}

// Write writes the history of one run of a workflow, as Temporal has it.
func (h *Histories) Write(id, run string, events *history.History) error {
	text, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(events)
	if err != nil {
		return fmt.Errorf("encode the history of %s: %w", id, err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(text)
	if err := errors.Join(err, zip.Close()); err != nil {
		return fmt.Errorf("compress the history of %s: %w", id, err)
	}
	name := strings.ReplaceAll(id, "/", "_") + "." + run + historyEnd
	return os.WriteFile(filepath.Join(h.folder, name), packed.Bytes(), 0o600)
}

// historyFiles answers the files of a folder of histories, ordered by name.
func historyFiles(folder string) ([]string, error) {
	if _, err := readIndex(folder); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"+historyEnd))
	slices.Sort(files)
	return files, err
}

// readIndex reads what a folder of histories is.
func readIndex(folder string) (i Index, err error) {
	path := filepath.Join(folder, indexName)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return i, fmt.Errorf("%s is missing, which says what the histories are; record them anew with `xce-elastic simulate record-histories`", path)
	}
	if err != nil {
		return i, err
	}
	if err := json.Unmarshal(text, &i); err != nil || i.Format != historyFormat {
		return i, fmt.Errorf("%s does not say that histories of workflows are here; record them anew with `xce-elastic simulate record-histories`", path)
	}
	if i.Version != historyVersion {
		return i, fmt.Errorf("%s: the histories have format %d, and this program knows format %d; replay them with release %s, or record them anew", path, i.Version, historyVersion, i.Release)
	}
	return i, nil
}

// decode decrypts what is in a history.
type decode func(ctx context.Context, message proto.Message) error

// decoder answers what decrypts the histories of a record.
func (o Options) decoder(folder string, histories []string) (decode, error) {
	if o.Codec == nil || len(histories) == 0 {
		return func(context.Context, proto.Message) error { return nil }, nil
	}
	i, err := readIndex(filepath.Join(folder, historyFolder))
	if err != nil {
		return nil, err
	}
	c, err := o.Codec(i.Namespace)
	if err != nil {
		return nil, err
	}
	return c.DecodeAll, nil
}

// readHistory reads a history.
func readHistory(path string) (*history.History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := decodeHistory(f)
	if err != nil {
		return nil, fmt.Errorf("%s: it is no history that can be read (%w); record it anew, or remove it", path, err)
	}
	return h, nil
}

func decodeHistory(packed io.Reader) (*history.History, error) {
	text, err := gzip.NewReader(packed)
	if err != nil {
		return nil, err
	}
	return client.HistoryFromJSON(text, client.HistoryJSONOptions{})
}

// cut cuts a history off after its last completed workflow task and what that commanded: what came later no code
// has seen. It answers none where no task was completed.
func cut(events []*history.HistoryEvent) []*history.HistoryEvent {
	last := -1
	for i, e := range events {
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			last = i
		}
	}
	if last < 0 {
		return nil
	}
	end := last + 1
	for end < len(events) && commandedBy(events[end], events[last].GetEventId()) {
		end++
	}
	return events[:end]
}

// commandedBy tells whether an event is what a workflow task commanded. Those of updates do not say so, but stand
// nowhere else.
func commandedBy(e *history.HistoryEvent, task int64) bool {
	switch e.GetEventType() {
	case enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED, enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
		return true
	}
	m := e.ProtoReflect()
	attributes := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))
	if attributes == nil {
		return false
	}
	of := m.Get(attributes).Message()
	field := of.Descriptor().Fields().ByName("workflow_task_completed_event_id")
	return field != nil && of.Get(field).Int() == task
}
