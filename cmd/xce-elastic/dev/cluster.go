// Package dev runs a whole example cluster on one machine: Temporal with its
// UI, controller, provisioner and agent as programs of their own, a shared
// pool, and a workload that tells the story of elastic licence tokens.
package dev

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"text/template"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/providers"
	"xce.internal/elastic/starter"
	"xce.internal/elastic/workflows"
)

// Options say how to run the example.
type Options struct {
	// Folder keeps all state; what an earlier run left there is taken up again.
	Folder string
	// Program is this program's own path; devserver and pool lie beside it.
	Program string
	// Temporal is how a server that runs already is reached; where Running is
	// false, one is started.
	Temporal client.Options
	Running  bool
	// Policy is the order in which waiting jobs get what is free; empty means the
	// usual one.
	Policy string
	// Live draws a live view on Out, which then is a terminal.
	Live bool
	Out  io.Writer
	// Stay keeps the cluster up after the workload's end, until ctx ends.
	Stay bool
}

// example is what the example cluster is made of; tests make others.
type example struct {
	// Cluster is the cluster file, a template.
	Cluster string
	// Units and Hold (seconds) are those of the pool.
	Units, Hold int64
	// Hosts are flags of `local init`; none where no host is made.
	Hosts []string
	// Server are further flags of the Temporal server.
	Server []string
	// Values are further ones of the cluster file.
	Values map[string]string
	// Elsewhere tells that another scheduler has the hosts, so that no agent runs.
	Elsewhere bool
}

//go:embed cluster.yaml
var exampleCluster string

var theExample = example{Cluster: exampleCluster, Units: 8, Hold: 8, Hosts: []string{
	"--template", "small=4:4096", "--capacity", "small=4", "--price", "small=150000", "--hold", "small=5",
	"--template", "large=8:8192", "--capacity", "large=2", "--price", "large=360000", "--hold", "large=5",
	"--latency", "2s",
}}

// farm is the running example.
type farm struct {
	Options
	example
	mu         sync.Mutex
	parts      []*process
	controller *api.Client
	address    string // of the controller
	temporal   string // address
	ui         string // address of the Temporal UI, where we started it
}

// Names of the example.
const (
	resource   = "vcs"
	poolName   = "pool-a"
	hostsName  = "local"
	poolPrice  = 250_000 // millionths of a currency unit per token and hour
	neighbour  = "west"
	configName = "xce-elastic.yaml"
)

func (f *farm) path(name string) string { return filepath.Join(f.Folder, name) }

// beside finds a program that is built with this one.
func (f *farm) beside(name string) (string, error) {
	path := filepath.Join(filepath.Dir(f.Program), name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("program %s is neither beside %s nor on PATH; `make build` builds both: %w", name, f.Program, err)
	}
	return path, nil
}

// start brings everything up, in order, and waits for each part to be ready.
func (f *farm) start(ctx context.Context) error {
	steps := []struct {
		what string
		do   func(context.Context) error
	}{
		{"certificates", f.issueCertificates},
		{"shared pool", f.makePool},
		{"hosts", f.makeHosts},
		{"Temporal", f.startTemporal},
		{"configuration", f.writeConfig},
		{"controller", f.startController},
		{"provisioner", f.startWorker},
		{"agent", f.startAgent},
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Fprintf(f.Out, "  %-14s ready after %s\n", step.what, time.Since(began).Round(10*time.Millisecond))
	}
	return nil
}

// run starts a program as a part of the farm, in place of one of that name
// that has ended.
func (f *farm) run(name, program string, args []string, environment ...string) (*process, error) {
	p, err := start(f.Folder, name, program, args, environment)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = slices.DeleteFunc(f.parts, func(old *process) bool { return old.name == name })
	f.parts = append(f.parts, p)
	return p, nil
}

// stop stops everything, the last started first, and then the hosts that were made.
func (f *farm) stop() error {
	var errs []error
	for _, p := range slices.Backward(f.parts) {
		errs = append(errs, p.stop())
	}
	return errors.Join(append(errs, f.stopHosts())...)
}

// healthy answers an error where a part has ended by itself.
func (f *farm) healthy() error {
	var errs []error
	for _, p := range f.parts {
		errs = append(errs, p.ended())
	}
	return errors.Join(errs...)
}

func (f *farm) issueCertificates(context.Context) error {
	folder := f.path("pki")
	if _, err := os.Stat(filepath.Join(folder, "admin.crt")); err == nil {
		return nil
	}
	ca, err := pki.OpenAuthority(folder)
	if err != nil {
		return err
	}
	return errors.Join(
		ca.Issue("controller", pki.Peer{Role: "controller", Name: "east"}, "127.0.0.1", "localhost"),
		ca.Issue("admin", pki.Peer{Role: string(api.Admin), Name: "you"}),
		ca.Issue("provisioner", pki.Peer{Role: string(api.Provisioner), Name: "p1"}),
		ca.Issue("node1", pki.Peer{Role: string(api.HostRole), Name: "node1"}),
		ca.Issue("viewer", pki.Peer{Role: string(api.Viewer), Name: "dashboard"}),
	)
}

func (f *farm) makePool(ctx context.Context) error {
	if _, err := os.Stat(f.path("pool.json")); err == nil {
		return nil
	}
	pool, err := f.beside("pool")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, pool, "init", "--file", f.path("pool.json"),
		"--resource", fmt.Sprintf("%s=%d", resource, f.Units), "--hold", fmt.Sprintf("%s=%d", resource, f.Hold),
		"--price", fmt.Sprintf("%s=%d", resource, poolPrice)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make the pool: %w: %s", err, out)
	}
	return nil
}

func (f *farm) makeHosts(ctx context.Context) error {
	if _, err := os.Stat(f.path("hosts")); err == nil || len(f.Hosts) == 0 {
		return nil
	}
	return f.local(ctx, append([]string{"init"}, f.Hosts...)...)
}

// stopHosts ends the hosts that are left on this machine.
func (f *farm) stopHosts() error {
	if _, err := os.Stat(f.path("hosts")); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	return f.local(ctx, "stop")
}

// local runs an operator's verb of the provider of hosts.
func (f *farm) local(ctx context.Context, args ...string) error {
	local, err := f.beside("local")
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, local, append(args, "--folder", f.path("hosts"))...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("local %s: %w: %s", args[0], err, out)
	}
	return nil
}

// startTemporal starts a server, or makes the one that runs fit.
func (f *farm) startTemporal(ctx context.Context) error {
	if f.Running {
		f.temporal = f.Temporal.HostPort
		connection, err := client.DialContext(ctx, f.Temporal)
		if err != nil {
			return fmt.Errorf("connect to Temporal at %s: %w", f.Temporal.HostPort, err)
		}
		defer connection.Close()
		if err := starter.Prepare(ctx, connection, f.Temporal.Namespace); err != nil {
			return err
		}
		return f.mustBeAlone(ctx, connection)
	}
	program, err := f.beside("devserver")
	if err != nil {
		return err
	}
	ready := f.path("temporal.json")
	args := []string{"--db", f.path("temporal.db"), "--namespace", f.Temporal.Namespace, "--ready-file", ready}
	args = append(append(args, f.temporalPorts()...), f.Server...)
	for _, a := range workflows.SearchAttributes {
		args = append(args, "--search-attribute", a)
	}
	if err := os.Remove(ready); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := f.run("temporal", program, args)
	if err != nil {
		return err
	}
	return p.await(ctx, time.Minute, func(context.Context) error {
		data, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		var r struct{ Address, UI string }
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		f.temporal, f.ui = r.Address, r.UI
		return nil
	})
}

// mustBeAlone refuses a namespace in which another cluster's provider runs: the
// two would act on each other's loans.
func (f *farm) mustBeAlone(ctx context.Context, connection client.Client) error {
	if _, err := os.Stat(f.path("controller.db")); err == nil {
		return nil // it is our own, from an earlier run
	}
	provider, err := connection.DescribeWorkflow(ctx, workflows.ProviderID(poolName), "")
	var absent *serviceerror.NotFound
	switch {
	case errors.As(err, &absent):
		return nil
	case err != nil:
		return fmt.Errorf("look for other clusters in namespace %s: %w", f.Temporal.Namespace, err)
	case provider.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return fmt.Errorf("namespace %s is used by another cluster, which has a provider %s: name one of your own with TEMPORAL_NAMESPACE", f.Temporal.Namespace, poolName)
	}
	return nil
}

// leave ends the provider's story on a server that is not ours, where no one
// will run it any more.
func (f *farm) leave() error {
	if !f.Running || f.Stay || f.temporal == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := client.DialContext(ctx, f.Temporal)
	if err != nil {
		return fmt.Errorf("end the provider's story: %w", err)
	}
	defer connection.Close()
	return connection.TerminateWorkflow(ctx, workflows.ProviderID(poolName), "", "the example has ended")
}

// temporalPorts picks free ports at first; a server that is started again must
// be where the others look for it.
func (f *farm) temporalPorts() []string {
	if f.temporal == "" {
		return []string{"--port", "0"}
	}
	_, port, _ := net.SplitHostPort(f.temporal)
	return []string{"--port", port, "--ui-port", "-1"}
}

func (f *farm) writeConfig(context.Context) error {
	pool, err := f.beside("pool")
	if err != nil {
		return err
	}
	if f.address, err = freePort(); err != nil {
		return err
	}
	local, err := f.beside("local")
	if err != nil {
		return err
	}
	file, err := os.Create(f.path(configName))
	if err != nil {
		return fmt.Errorf("write the cluster file: %w", err)
	}
	defer file.Close()
	values := map[string]string{
		"Pool": pool, "Local": local, "Program": f.Program, "Folder": f.Folder, "Controller": f.address, "Temporal": f.temporal, "Namespace": f.Temporal.Namespace, "Policy": f.Policy,
	}
	maps.Copy(values, f.Values)
	return template.Must(template.New(configName).Parse(f.Cluster)).Execute(file, values)
}

// freePort answers a loopback address with a port that is free now.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// as answers the variables that give a part its own certificate.
func (f *farm) as(file string) []string {
	files := pki.In(f.path("pki"), file)
	return []string{"XCE_PEER_CERT=" + files.Cert, "XCE_PEER_KEY=" + files.Key}
}

func (f *farm) startController(ctx context.Context) error {
	if f.controller == nil { // it stays the same when the controller starts anew
		tls, err := pki.In(f.path("pki"), "admin").Client()
		if err != nil {
			return err
		}
		f.controller = api.NewClient("https://"+f.address, tls)
	}
	p, err := f.run("controller", f.Program, []string{"controller", "--config", configName})
	if err != nil {
		return err
	}
	return p.await(ctx, 20*time.Second, func(ctx context.Context) error {
		_, err := f.controller.Status(ctx)
		return err
	})
}

func (f *farm) startWorker(ctx context.Context) error {
	p, err := f.run("worker", f.Program, []string{"worker", "--config", configName}, f.as("provisioner")...)
	if err != nil {
		return err
	}
	return p.await(ctx, time.Minute, func(ctx context.Context) error {
		st, err := f.controller.Status(ctx)
		if err == nil && len(st.Offers) == 0 {
			err = errors.New("no provider has published its offers yet")
		}
		if err != nil || len(f.Hosts) == 0 {
			return err
		}
		catalog, err := f.controller.Catalog(ctx)
		if err == nil && len(catalog.Templates) == 0 {
			err = errors.New("no provider has published its templates yet")
		}
		return err
	})
}

func (f *farm) startAgent(ctx context.Context) error {
	if f.Elsewhere {
		return nil
	}
	p, err := f.run("agent", f.Program, []string{"agent", "--config", configName}, f.as("node1")...)
	if err != nil {
		return err
	}
	return p.await(ctx, 20*time.Second, func(ctx context.Context) error {
		st, err := f.controller.Status(ctx)
		if err == nil && len(st.Hosts) == 0 {
			err = errors.New("the host has not joined yet")
		}
		return err
	})
}

// poolAs answers the pool's script as another cluster calls it.
func (f *farm) poolAs(name string) (*providers.Runner, error) {
	return f.script(poolName, "pool", map[string]string{"XCE_POOL_FILE": f.path("pool.json"), "XCE_POOL_CLUSTER": name})
}

// hostsOf answers the script of the provider of hosts as our cluster calls it.
func (f *farm) hostsOf() (*providers.Runner, error) {
	return f.script(hostsName, "local", map[string]string{
		"XCE_LOCAL_FOLDER": f.path("hosts"), "XCE_LOCAL_CLUSTER": "east", "XCE_LOCAL_AGENT": f.Program,
	})
}

func (f *farm) script(name, program string, environment map[string]string) (*providers.Runner, error) {
	script, err := f.beside(program)
	if err != nil {
		return nil, err
	}
	return providers.NewRunner(providers.Spec{Name: name, Script: script, TimeLimit: 10 * time.Second, Environment: environment}, slog.New(slog.DiscardHandler))
}
