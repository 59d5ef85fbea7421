package dialogue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/providers"
)

// lender is a script with one verb, and one for its operator.
func lender(t *testing.T, act func(input []byte) (any, error)) Script {
	t.Helper()
	read := func() (*Misbehaviour, error) {
		m, err := MisbehaviourOf("TEST")
		return &m, err
	}
	verbs := map[providers.Verb]func(m *Misbehaviour, input []byte, now time.Time) (any, error){
		providers.VerbList: func(m *Misbehaviour, input []byte, _ time.Time) (any, error) {
			m.Count(new(int64))
			return act(input)
		},
	}
	return Script{Name: "lender", Usage: "usage\n", Act: Act(read, verbs), Operate: map[string]func([]string, time.Time, io.Writer, io.Writer) error{
		"show": func(args []string, _ time.Time, stdout, stderr io.Writer) error {
			f := NewFlags("lender", "show", "file", "the lender's file", stderr)
			amounts := f.Amounts("amount", "how many")
			if err := f.Read(args); err != nil {
				return err
			}
			return Show(stdout, "table", nil, func(table io.Writer) error {
				_, err := fmt.Fprintln(table, f.Place, amounts)
				return err
			})
		},
	}}
}

func TestScriptAnswersOrSaysWhyNot(t *testing.T) {
	tests := []struct {
		name           string
		args           []string
		act            func([]byte) (any, error)
		exit           int
		stdout, stderr string
	}{
		{"an answer", []string{"list"}, func(in []byte) (any, error) { return string(in), nil }, 0, "\"{}\"\n", ""},
		{"a raw answer", []string{"list"}, func([]byte) (any, error) { return Raw(`{"gra`), nil }, 0, `{"gra`, ""},
		{"a refusal", []string{"list"}, func([]byte) (any, error) { return nil, Refusef("not %d", 7) }, 2, `{"status":"refused","reason":"invalid","message":"not 7"}` + "\n", ""},
		{"a fault", []string{"list"}, func([]byte) (any, error) { return nil, errors.New("no file") }, 1, `{"status":"unknown","message":"no file"}` + "\n", "lender: no file\n"},
		{"silence", []string{"list"}, func([]byte) (any, error) { return nil, ErrSilent }, 1, "", ""},
		{"an unknown verb", []string{"lend"}, nil, 2, `{"status":"refused","reason":"invalid","message":"verb \"lend\" is not of contract version 1"}` + "\n", ""},
		{"no verb", nil, nil, 2, "", "usage\n"},
		{"an operator's verb", []string{"show", "--file", "f", "--amount", "a=1", "--amount", "b=2"}, nil, 0, "f map[a:1 b:2]\n", ""},
		{"no place", []string{"show"}, nil, 1, "", "lender: --file is missing: name the lender's file\n"},
		{"an argument too many", []string{"show", "--file", "f", "g"}, nil, 1, "", "lender: \"g\" is no flag: lender help shows the flags\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			exit := lender(t, test.act).Run(t.Context(), test.args, strings.NewReader("{}"), &stdout, &stderr)
			if exit != test.exit || stdout.String() != test.stdout || stderr.String() != test.stderr {
				t.Errorf("exit status %d, %q, %q", exit, stdout.String(), stderr.String())
			}
		})
	}
}

func TestAmountsThatAreNone(t *testing.T) {
	for _, bad := range []string{"a", "=1", "a=", "a=-1", "a=1.5", "a=1000000000001", strings.Repeat("x", 201) + "=1"} {
		f := NewFlags("lender", "show", "file", "the file", io.Discard)
		amounts := f.Amounts("amount", "how many")
		if err := f.Read([]string{"--file", "f", "--amount", bad}); !errors.Is(err, ErrUsage) || len(amounts) > 0 {
			t.Errorf("%s: %v, %v", bad, err, amounts)
		}
	}
}

func TestMisbehaviourIsAfterTheDeed(t *testing.T) {
	t.Setenv("TEST_FAIL", "2")
	t.Setenv("TEST_LATENCY_MS", "30")
	m, err := MisbehaviourOf("TEST")
	if err != nil {
		t.Fatal(err)
	}
	var calls int64
	for call := range 4 {
		m.Count(&calls)
		begin := time.Now()
		if err := m.After(t.Context()); errors.Is(err, ErrSilent) != (call%2 == 1) || time.Since(begin) < 30*time.Millisecond {
			t.Errorf("call %d: %v after %s", call, err, time.Since(begin))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Latency = time.Hour
	if err := m.After(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	t.Setenv("TEST_FAIL", "often")
	if _, err := MisbehaviourOf("TEST"); err == nil || !strings.Contains(err.Error(), "TEST_FAIL") {
		t.Errorf("got %v", err)
	}
}
