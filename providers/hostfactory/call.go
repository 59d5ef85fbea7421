package hostfactory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"xce.internal/elastic/providers"
)

// The scripts of a plug-in, by the names that they always have.
const (
	getTemplates      = "getAvailableTemplates"
	requestMachines   = "requestMachines"
	getStatus         = "getRequestStatus"
	returnMachines    = "requestReturnMachines"
	getReturnRequests = "getReturnRequests"
)

var scripts = []string{getTemplates, requestMachines, getStatus, returnMachines, getReturnRequests}

// reply is what came of calling a script. No secret is in it.
type reply struct {
	docs []map[string]any // empty: nothing readable
	run  providers.Execution
}

// why says what is wrong with a call, empty where nothing is.
func (r reply) why(script string) string {
	switch {
	case r.run.Err != nil:
		return r.run.Err.Error()
	case len(r.docs) == 0 && r.run.Exit == 0:
		return script + ": the answer has no JSON object: see its text and the plug-in's log"
	case len(r.docs) == 0:
		return fmt.Sprintf("%s: exit status %d and no JSON object: see its text and the plug-in's log", script, r.run.Exit)
	case r.run.Exit != 0:
		return strings.TrimSuffix(fmt.Sprintf("%s: exit status %d: %s", script, r.run.Exit, messages(r.docs)), ": ")
	}
	return ""
}

// unknown is the outcome of a call that leaves a doubt.
func (r reply) unknown(message string) providers.Outcome {
	return providers.Outcome{Status: providers.StatusUnknown, Message: clip(message), Text: clip(string(r.run.Stdout))}
}

// call runs one script and reads what it says.
func (a *Adapter) call(ctx context.Context, script string, input any) reply {
	data, err := json.Marshal(input)
	if err != nil {
		panic(err) // inputs are the types below
	}
	run := a.execute(ctx, script, append(data, '\n'))
	run.Stdout = []byte(a.scrub(string(run.Stdout)))
	answer := reply{run: run}
	if run.Err == nil {
		answer.docs = documents(run.Stdout)
	}
	if why := answer.why(script); why != "" {
		a.log.Warn("plug-in", "script", script, "what", clip(why))
	}
	return answer
}

// command executes a script with its input in a file that only we may read, and that is gone afterwards.
func (a *Adapter) command(ctx context.Context, script string, input []byte) providers.Execution {
	path, err := a.input(script, input)
	if err != nil {
		return providers.Execution{Exit: -1, Err: fmt.Errorf("%s not started: %w", script, err)}
	}
	defer func() { _ = os.Remove(path) }() // what is left is swept before the next call
	secrets, done, err := a.secrets.ReadSecrets(a.spec.Secrets)
	if err != nil {
		return providers.Execution{Exit: -1, Err: fmt.Errorf("%s not started: %w", script, err)}
	}
	defer done()
	a.stuck.Store(true)
	return providers.Command{
		User: a.user, Secrets: secrets,
		Name: script, Path: a.spec.path(script), Args: []string{"-f", path}, Folder: a.spec.Work, Environment: a.environment(),
		TimeLimit: a.spec.TimeLimit, OutputLimit: a.spec.OutputLimit, Scrub: a.scrub, Log: a.log.With("script", script),
	}.Execute(ctx, func() { a.stuck.Store(false) })
}

func (a *Adapter) input(script string, data []byte) (path string, err error) {
	file, err := os.CreateTemp(a.inputs(), script+"-*.json") // created with mode 0600
	if err != nil {
		return "", fmt.Errorf("write its input: %w", err)
	}
	_, err = file.Write(data)
	if err = errors.Join(err, a.user.Own(file), file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", fmt.Errorf("write its input: %w", err)
	}
	return file.Name(), nil
}

// inputs is the folder of input files.
func (a *Adapter) inputs() string { return a.spec.State + ".input" }

// sweep removes input files that a killed process left, and makes their folder.
func (a *Adapter) sweep() error {
	if err := os.RemoveAll(a.inputs()); err != nil {
		return fmt.Errorf("remove old input files: %w", err)
	}
	// Others cannot list the folder; the user of the scripts reads the file that it is told of.
	if err := errors.Join(os.Mkdir(a.inputs(), 0o711), os.Chmod(a.inputs(), 0o711)); err != nil {
		return fmt.Errorf("folder for input files: %w", err)
	}
	return nil
}

// environment has what plug-ins of both flavours look for: some take one for the other.
func (a *Adapter) environment() map[string]string {
	s := a.spec
	host, _ := os.Hostname() // without a name the variable is empty
	environment := map[string]string{
		"PROVIDER_NAME": s.Name, "PRO_LSF_TOP": s.Top, "PRO_CONF_DIR": s.Conf, "PRO_DATA_DIR": s.Work,
		"PRO_LSF_LOGDIR": s.Logs, "SCRIPT_OPTIONS": "",

		"HF_PROVIDER_NAME": s.Name, "HF_TOP": s.Top, "HF_PROVIDER_CONFDIR": s.Conf, "HF_PROVIDER_WORKDIR": s.Work,
		"HF_PROVIDER_LOGDIR": s.Logs, "HF_CONFDIR": s.Conf, "HF_WORKDIR": s.Work, "HF_LOGDIR": s.Logs, "HF_VERSION": "1.2",
		"HF_LOGLEVEL": "INFO", "HF_LOGGING_CONSOLE_ENABLED": "false",
		"HF_PROVIDER_ACTION_TIMEOUT": strconv.Itoa(int(s.TimeLimit.Seconds())), "EGOSC_INSTANCE_HOST": host,
	}
	for name, value := range environment {
		if value == "" && name != "SCRIPT_OPTIONS" {
			delete(environment, name)
		}
	}
	for name, value := range s.Environment {
		environment[name] = value
	}
	return environment
}

// Inputs of the scripts.
type (
	machinesInput struct {
		Machines []machineInput `json:"machines"`
	}
	machineInput struct {
		Name string `json:"name"`
		ID   string `json:"machineId"`
	}
	statusInput struct {
		Requests []statusOf `json:"requests"`
	}
	statusOf struct {
		ID string `json:"requestId"`
	}
	templateInput struct {
		Template templateCount `json:"template"`
	}
	templateCount struct {
		ID    string `json:"templateId"`
		Count int64  `json:"machineCount"`
	}
	lsfInput struct {
		templateInput
		Account  string            `json:"rc_account"`
		UserData map[string]string `json:"userData"`
	}
)

func inputOf(m *machine) machineInput { return machineInput{Name: m.Name, ID: m.ID} }

func askFor(ids []string) statusInput {
	in := statusInput{Requests: []statusOf{}}
	for _, id := range ids {
		in.Requests = append(in.Requests, statusOf{id})
	}
	return in
}

// requestInput is what requestMachines gets. Only the lsf flavour has room for how a host joins.
func (a *Adapter) requestInput(template string, in providers.RequestIn) any {
	plain := templateInput{templateCount{template, in.Units}}
	if a.spec.Flavour == Symphony {
		return plain
	}
	return lsfInput{plain, a.spec.Account, joinData(in.Join)}
}

// absolute keeps relative paths right though scripts run in the work folder.
func (s *Spec) absolute() error {
	for _, path := range []*string{&s.Scripts, &s.Conf, &s.Work, &s.Logs, &s.Top, &s.State} {
		if *path == "" {
			continue
		}
		full, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = full
	}
	return nil
}
