// Command mischief is a provider script for runs of chaos: it has another script answer, and misbehaves as a file
// says that is read at each call. What was really done is in the other script's own journal.
//
//	MISCHIEF_SCRIPT   the script that answers
//	MISCHIEF_CONTROL  the file, JSON; see Control
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Control says how to misbehave.
type Control struct {
	// Mode is one of
	//
	//	slow     wait, then act
	//	late     act, then wait
	//	dead     end with no answer, and do nothing
	//	silent   act, then end with no answer
	//	babble   act, then answer nonsense
	//	half     act, then answer half of it
	//	refuse   refuse requests and returns, and do nothing
	//	stale    act, and list what there was when this mode began
	//	pending  act later, where a request is concerned
	Mode string `json:"mode,omitempty"`
	// Wait is in milliseconds.
	Wait int64 `json:"wait,omitempty"`
	// Agents is where hosts reach the controller, in place of what they are told.
	Agents string `json:"agents,omitempty"`
	// Environment has lines NAME=VALUE for the script, and so for the hosts that it makes.
	Environment []string `json:"environment,omitempty"`
}

func main() {
	code, err := run(os.Args[1:], os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mischief:", err)
	}
	os.Exit(code)
}

// call is one call of the script.
type call struct {
	Control
	path  string // of the control file
	verb  string
	input []byte
}

func run(args []string, stdin io.Reader, stdout io.Writer) (int, error) {
	if len(args) != 1 {
		return 2, errors.New("one verb of the provider contract is needed")
	}
	c := call{path: os.Getenv("MISCHIEF_CONTROL"), verb: args[0]}
	text, err := os.ReadFile(c.path)
	if err == nil {
		err = json.Unmarshal(text, &c.Control)
	}
	if err != nil {
		return 1, fmt.Errorf("control: %w", err)
	}
	if c.input, err = io.ReadAll(stdin); err != nil {
		return 1, err
	}
	return c.answer(stdout)
}

func (c call) answer(stdout io.Writer) (int, error) {
	switch c.Mode {
	case "slow":
		c.wait()
	case "dead":
		return 1, nil
	case "refuse":
		if c.verb == "request" || c.verb == "return" {
			return c.print(stdout, 0, []byte(`{"status":"refused","reason":"denied","retry_after":1,"message":"not now"}`))
		}
	}
	if err := c.redirect(); err != nil {
		return 1, err
	}
	out, code, err := c.act()
	if err != nil {
		return 1, err
	}
	switch c.Mode {
	case "late":
		c.wait()
	case "silent":
		return 1, nil
	case "babble":
		out = []byte("<html>502 Bad Gateway</html>")
	case "half":
		out = out[:len(out)/2]
	case "stale":
		if c.verb == "list" {
			out, err = c.first(out)
		}
	}
	if err != nil {
		return 1, err
	}
	return c.print(stdout, code, out)
}

func (c call) wait() { time.Sleep(time.Duration(c.Wait) * time.Millisecond) }

func (c call) print(stdout io.Writer, code int, out []byte) (int, error) {
	_, err := stdout.Write(out)
	return code, err
}

// redirect tells a host that is made where it reaches the controller.
func (c *call) redirect() error {
	if c.Agents == "" || c.verb != "request" {
		return nil
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(c.input, &in); err != nil || in["join"] == nil {
		return nil // the script will say what is wrong
	}
	var join map[string]any
	err := json.Unmarshal(in["join"], &join)
	if err == nil {
		join["controller"] = c.Agents
		in["join"], err = json.Marshal(join)
	}
	if err == nil {
		c.input, err = json.Marshal(in)
	}
	return err
}

// act has the script act.
func (c call) act() (out []byte, code int, err error) {
	cmd := exec.Command(os.Getenv("MISCHIEF_SCRIPT"), c.verb)
	cmd.Env = append(os.Environ(), c.Environment...)
	if c.Mode == "pending" {
		cmd.Env = append(cmd.Env, "XCE_POOL_PENDING_MS=1500", "XCE_LOCAL_PENDING_MS=1500")
	}
	var answer bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.input), &answer, os.Stderr
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return answer.Bytes(), ended.ExitCode(), nil
	}
	return answer.Bytes(), 0, err
}

// first answers what was listed first since the control file was written.
func (c call) first(now []byte) ([]byte, error) {
	info, err := os.Stat(c.path)
	if err != nil {
		return nil, err
	}
	kept := filepath.Join(filepath.Dir(c.path), fmt.Sprintf("%s.list-%d", filepath.Base(c.path), info.ModTime().UnixNano()))
	if before, err := os.ReadFile(kept); err == nil {
		return before, nil
	}
	return now, os.WriteFile(kept, now, 0o600)
}
