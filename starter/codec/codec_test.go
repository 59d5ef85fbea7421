package codec_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"xce.internal/elastic/starter/codec"
)

const namespace = "farm"

// keyring is a file of keys, and what uses it.
type keyring struct {
	t    *testing.T
	path string
}

func newKeyring(t *testing.T) keyring {
	k := keyring{t, filepath.Join(t.TempDir(), "codec.keys")}
	k.add()
	return k
}

// add adds a key, and answers its name.
func (k keyring) add() string {
	k.t.Helper()
	ids, err := codec.AddKey(k.path)
	if err != nil {
		k.t.Fatal(err)
	}
	return ids[len(ids)-1]
}

func (k keyring) open() *codec.Codec {
	k.t.Helper()
	c, err := codec.Open(k.path, namespace, slog.New(slog.DiscardHandler))
	if err != nil {
		k.t.Fatal(err)
	}
	return c
}

// seal converts a value to an encrypted payload.
func seal(t *testing.T, c *codec.Codec, value any) *common.Payload {
	t.Helper()
	data, _ := c.Converters()
	p, err := data.ToPayload(value)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// opened answers the text that is in a payload.
func opened(c *codec.Codec, p *common.Payload) (text string, err error) {
	data, _ := c.Converters()
	return text, data.FromPayload(p, &text)
}

func keyOf(p *common.Payload) string { return string(p.GetMetadata()["encryption-key-id"]) }

func TestWhatIsEncryptedIsReadWithItsKeyOnly(t *testing.T) {
	t.Parallel()
	mine, other := newKeyring(t), newKeyring(t)
	p := seal(t, mine.open(), "hunter2")
	if bytes.Contains(p.Data, []byte("hunter2")) || bytes.Contains(p.Data, []byte("json/plain")) {
		t.Errorf("the text can be read in %q", p.Data)
	}
	if got, err := opened(mine.open(), p); got != "hunter2" || err != nil {
		t.Errorf("it is read as %q, %v", got, err)
	}
	if again := seal(t, mine.open(), "hunter2"); bytes.Equal(again.Data, p.Data) {
		t.Error("the same text is encrypted to the same bytes")
	}
	_, err := opened(other.open(), p)
	var task *converter.WorkflowTaskFailureError
	if !errors.As(err, &task) || !strings.Contains(err.Error(), keyOf(p)) {
		t.Errorf("with other keys it is read with %v", err)
	}
	if _, err := opened(codec.None(namespace), p); !errors.As(err, &task) || !strings.Contains(err.Error(), "temporal.codec.keys") {
		t.Errorf("without keys it is read with %v", err)
	}
}

func TestAPayloadThatWasChangedIsRefused(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	second := k.add()
	c := k.open()
	elsewhere, err := codec.Open(k.path, "other", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened(elsewhere, seal(t, c, "x")); err == nil {
		t.Error("a payload of another namespace is read")
	}
	for name, change := range map[string]func(*common.Payload){
		"a bit of its salt":     func(p *common.Payload) { p.Data[0] ^= 1 },
		"a bit of its nonce":    func(p *common.Payload) { p.Data[16] ^= 1 },
		"a bit of its text":     func(p *common.Payload) { p.Data[30] ^= 1 },
		"a bit of its tag":      func(p *common.Payload) { p.Data[len(p.Data)-1] ^= 1 },
		"its end":               func(p *common.Payload) { p.Data = p.Data[:len(p.Data)-1] },
		"nearly all":            func(p *common.Payload) { p.Data = p.Data[:3] },
		"all":                   func(p *common.Payload) { p.Data = nil },
		"the name of its key":   func(p *common.Payload) { p.Metadata["encryption-key-id"] = []byte(second) },
		"the way of its making": func(p *common.Payload) { p.Metadata["encryption-cipher"] = []byte("ROT13") },
	} {
		p := seal(t, c, "hunter2")
		change(p)
		if got, err := opened(c, p); err == nil {
			t.Errorf("with %s changed it is read as %q", name, got)
		}
	}
}

func TestKeysAreChangedWhileTheyAreInUse(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	c := k.open()
	old := seal(t, c, "old")
	next := k.add()
	if p := seal(t, c, "x"); keyOf(p) == next {
		t.Error("a new key encrypts at once, before others have it")
	}
	if _, err := codec.UseKey(k.path, next); err != nil {
		t.Fatal(err)
	}
	p := seal(t, c, "new")
	if keyOf(p) != next {
		t.Errorf("%s encrypts, want %s", keyOf(p), next)
	}
	for want, p := range map[string]*common.Payload{"old": old, "new": p} {
		if got, err := opened(c, p); got != want || err != nil {
			t.Errorf("read is %q, %v, want %q", got, err, want)
		}
	}
	if _, err := codec.DropKey(k.path, next); err == nil {
		t.Error("the key that encrypts was dropped")
	}
	if _, err := codec.DropKey(k.path, keyOf(old)); err != nil {
		t.Fatal(err)
	}
	if got, err := opened(c, old); err == nil {
		t.Errorf("without its key it is read as %q", got)
	}
}

func TestKeysThatAreSpoiltLaterLeaveThoseBefore(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	c := k.open()
	p := seal(t, c, "x")
	if err := os.WriteFile(k.path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := opened(c, p); got != "x" || err != nil {
		t.Errorf("it is read as %q, %v", got, err)
	}
}

func TestWhatIsNotEncryptedIsReadAsItIs(t *testing.T) {
	t.Parallel()
	plain, err := converter.GetDefaultDataConverter().ToPayload("from before")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*codec.Codec{newKeyring(t).open(), codec.None(namespace)} {
		if got, err := opened(c, plain); got != "from before" || err != nil {
			t.Errorf("it is read as %q, %v", got, err)
		}
	}
	if p := seal(t, codec.None(namespace), "x"); !proto.Equal(p, func() *common.Payload { p, _ := converter.GetDefaultDataConverter().ToPayload("x"); return p }()) {
		t.Errorf("without keys it is written as %v", p)
	}
}

func TestFailuresAreEncryptedWithTheirDetails(t *testing.T) {
	t.Parallel()
	c := newKeyring(t).open()
	_, failures := c.Converters()
	f := failures.ErrorToFailure(temporal.NewApplicationError("the licence server says hunter2", "refused", "hunter3"))
	text := f.String()
	if strings.Contains(text, "hunter") {
		t.Errorf("it can be read in %s", text)
	}
	if err := failures.FailureToError(f); !strings.Contains(err.Error(), "hunter2") {
		t.Errorf("read back it is %v", err)
	}
	h := &history.History{Events: []*history.HistoryEvent{{Attributes: &history.HistoryEvent_WorkflowExecutionFailedEventAttributes{
		WorkflowExecutionFailedEventAttributes: &history.WorkflowExecutionFailedEventAttributes{Failure: f},
	}}}}
	if err := c.DecodeAll(t.Context(), h); err != nil || !strings.Contains(h.String(), "hunter2") || !strings.Contains(h.String(), "hunter3") {
		t.Errorf("a history is decrypted to %v, %v", h, err)
	}
}

func TestFilesOfKeysThatAreNotSoundAreRefusedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	const sound = "a AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n"
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"sound":                  {"# note\n\n" + sound, 0o600, ""},
		"for reading":            {sound, 0o400, ""},
		"for the group":          {sound, 0o640, "mode 0640"},
		"for all":                {sound, 0o604, "mode 0604"},
		"to be run":              {sound, 0o700, "mode 0700"},
		"empty":                  {"# nothing\n", 0o600, "has none"},
		"a name twice":           {sound + sound, 0o600, ":2: there is a key a already"},
		"a key alone":            {"hunter2\n", 0o600, ":1: the line is not NAME KEY"},
		"three words":            {"a hunter2 b\n", 0o600, ":1: the line is not NAME KEY"},
		"a short key":            {"a aHVudGVyMg==\n", 0o600, ":1: the key a is not 32 bytes"},
		"no base64":              {"a hunter2\n", 0o600, ":1: the key a is not 32 bytes"},
		"a name with a bad sign": {"a:b " + strings.TrimPrefix(sound, "a "), 0o600, ":1: the line is not NAME KEY"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, test.mode); err != nil {
			t.Fatal(err)
		}
		_, err := codec.Open(path, namespace, slog.New(slog.DiscardHandler))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "aHVu")) {
			t.Errorf("%s: it tells a secret: %v", name, err)
		}
	}
	if _, err := codec.Open(t.TempDir(), namespace, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no plain file") {
		t.Errorf("a folder: %v", err)
	}
}

func TestAFileOfKeysIsWrittenForItsOwnerOnly(t *testing.T) {
	t.Parallel()
	k := newKeyring(t)
	if info, err := os.Stat(k.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it has %v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(k.path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := codec.AddKey(k.path); err == nil {
		t.Error("a file that cannot be read was written over")
	}
	if _, err := codec.UseKey(newKeyring(t).path, "none"); err == nil || !strings.Contains(err.Error(), `no key "none"`) {
		t.Errorf("a key that is not there: %v", err)
	}
}
