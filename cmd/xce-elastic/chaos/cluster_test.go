//go:build e2e

package chaos

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
	"xce.internal/elastic/cmd/xce-elastic/chaos/wire"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

//go:embed cluster.yaml
var clusterFile string

// farm is the cluster of one seed.
type farm struct {
	*station
	t      *testing.T
	seed   uint64
	folder string

	controllers []*controllerPart
	processes   map[string]*process
	order       []string // in which they were started
	wires       map[string]*wire.Wire
	providers   []provider
	stop        func()

	mu     sync.Mutex
	faults []evidence.Fault
}

// controllerPart is a controller, and a client that reaches it without a wire.
type controllerPart struct {
	*process
	listen string
	client *api.Client
}

// provider is one of the four: two pools and two makers of hosts.
type provider struct {
	Name        string
	Script      string
	Control     string
	Environment []string
	place       string // the file of a pool, the folder of a maker
	pool        bool
}

// capacities of the pools, by resource.
var capacities = []map[string]int64{{"vcs": 8}, {"vcs": 10, "dc": 6}}

func (f *farm) path(elements ...string) string {
	return filepath.Join(append([]string{f.folder}, elements...)...)
}

// newFarm makes a cluster and starts it; it is stopped with the test at the latest.
func (s *station) newFarm(t *testing.T, seed uint64) *farm {
	t.Helper()
	f := &farm{station: s, t: t, seed: seed, folder: t.TempDir(), processes: map[string]*process{"temporal": s.temporal}, wires: map[string]*wire.Wire{}}
	f.stop = sync.OnceFunc(f.end)
	t.Cleanup(f.stop)
	for _, step := range []func() error{f.certificates, f.makeProviders, f.makeState, f.controllersUp, f.provisionersUp, f.agentsUp} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *farm) certificates() error {
	ca, err := pki.OpenAuthority(f.path("pki"))
	if err != nil {
		return err
	}
	err = errors.Join(
		ca.Issue("controller", pki.Peer{Role: "controller", Name: "east"}, "127.0.0.1"),
		ca.Issue("admin", pki.Peer{Role: string(api.Admin), Name: "chaos"}),
	)
	for _, name := range provisioners {
		err = errors.Join(err, ca.Issue(name, pki.Peer{Role: string(api.Provisioner), Name: name}))
	}
	for _, name := range ownHosts {
		err = errors.Join(err, ca.Issue(name, pki.Peer{Role: string(api.HostRole), Name: name}))
	}
	return err
}

var (
	provisioners = []string{"p1", "p2", "p3"}
	ownHosts     = []string{"node1", "node2"}
)

func (f *farm) makeProviders() error {
	for i, capacity := range capacities {
		p := provider{
			Name: fmt.Sprintf("%c%d", 'a'+i, f.seed), Script: filepath.Join(f.bin, "pool"), place: f.path(fmt.Sprintf("pool-%c.json", 'a'+i)), pool: true,
		}
		p.Environment = []string{"XCE_POOL_FILE=" + p.place, "XCE_POOL_CLUSTER=east", "XCE_POOL_MAX_REQUEST=2"}
		args := []string{"init", "--file", p.place}
		for resource, units := range capacity {
			args = append(args, "--resource", fmt.Sprintf("%s=%d", resource, units), "--hold", resource+"=1", "--price", resource+"=250000")
		}
		if err := f.add(p, args); err != nil {
			return err
		}
	}
	for i, size := range []string{"2:4096", "4:8192"} {
		template := fmt.Sprintf("%s%d", []string{"small", "large"}[i], f.seed)
		p := provider{Name: fmt.Sprintf("%c%d", 'x'+i, f.seed), Script: filepath.Join(f.bin, "local"), place: f.path(fmt.Sprintf("farm-%c", 'x'+i))}
		p.Environment = []string{"XCE_LOCAL_FOLDER=" + p.place, "XCE_LOCAL_CLUSTER=east", "XCE_LOCAL_AGENT=" + f.program}
		err := f.add(p, []string{
			"init", "--folder", p.place, "--template", template + "=" + size, "--capacity", template + "=5",
			"--price", fmt.Sprintf("%s=%d", template, 100_000*(i+1)), "--latency", "300ms",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// add makes a provider that behaves.
func (f *farm) add(p provider, args []string) error {
	if out, err := exec.Command(p.Script, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make %s: %w: %s", p.Name, err, out)
	}
	p.Control = f.path(p.Name + ".control")
	f.providers = append(f.providers, p)
	return f.control(p, "", 0)
}

// operate runs an operator's verb of a provider's script.
func (p provider) operate(args ...string) error {
	flag := "--folder"
	if p.pool {
		flag = "--file"
	}
	if out, err := exec.Command(p.Script, append(args, flag, p.place)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s of %s: %w: %s", args[0], p.Name, err, out)
	}
	return nil
}

// control says how the script of a provider misbehaves; nothing says that it does not.
func (f *farm) control(p provider, mode string, wait cluster.Duration) error {
	c := map[string]any{"mode": mode, "wait": int64(wait)}
	if w := f.wires["agents>"+f.controllerNames()[0]]; w != nil {
		c["agents"] = f.addressThrough("agents")
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.Control+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(p.Control+".new", p.Control)
}

func (f *farm) controllerNames() []string {
	if f.shares() {
		return []string{"c1", "c2"}
	}
	return []string{"c1"}
}

// lay lays the wires of a peer to others.
func (f *farm) lay(from string, to map[string]string) error {
	for name, target := range to {
		w, err := wire.New(target)
		if err != nil {
			return err
		}
		f.wires[from+">"+name] = w
	}
	return nil
}

// addressThrough is where a peer reaches the controllers.
func (f *farm) addressThrough(from string) string {
	var addresses []string
	for _, name := range f.controllerNames() {
		addresses = append(addresses, "https://"+f.wires[from+">"+name].Address())
	}
	return strings.Join(addresses, ",")
}

// writeConfig writes the file of a process.
func (f *farm) writeConfig(name, peer string, more map[string]any) (string, error) {
	data := map[string]any{
		"Name": name, "Peer": peer, "PKI": f.path("pki"), "Mischief": f.mischief, "Providers": f.providers,
		"PoolA": f.providers[0].Name, "PoolB": f.providers[1].Name,
		"Listen": "127.0.0.1:1", "Controller": "https://127.0.0.1:1", "State": f.path("controller.db"), "Shares": false, "Temporal": f.address, "Namespace": namespace,
	}
	for key, value := range more {
		data[key] = value
	}
	file, err := os.Create(f.path(name + ".yaml"))
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Name(), template.Must(template.New(name).Parse(clusterFile)).Execute(file, data)
}

// part makes a process of the program, and starts it.
func (f *farm) part(name string, ready func(context.Context) error, environment []string, args ...string) (*process, error) {
	p := &process{name: name, folder: f.folder, program: f.program, args: args, environment: environment, ready: ready}
	f.processes[name] = p
	f.order = append(f.order, name)
	return p, p.start()
}

func (f *farm) controllersUp() error {
	tls, err := pki.In(f.path("pki"), "admin").Client()
	if err != nil {
		return err
	}
	listens := map[string]string{}
	for _, name := range f.controllerNames() {
		listens[name] = freePort(f.t)
	}
	for _, peer := range append([]string{"agents"}, append(provisioners, ownHosts...)...) {
		if err := f.lay(peer, listens); err != nil {
			return err
		}
	}
	for _, name := range f.controllerNames() {
		state, err := f.state(name)
		if err != nil {
			return err
		}
		config, err := f.writeConfig(name, "admin", map[string]any{"Listen": listens[name], "Controller": "https://" + listens[name], "State": state, "Shares": f.shares()})
		if err != nil {
			return err
		}
		c := &controllerPart{listen: listens[name], client: api.NewClient("https://"+listens[name], tls)}
		ready := func(ctx context.Context) error {
			_, err := c.client.Status(ctx)
			return err
		}
		if c.process, err = f.part(name, ready, nil, "controller", "--config", config); err != nil {
			return err
		}
		f.controllers = append(f.controllers, c)
		if err := c.await(f.t.Context(), 20*time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (f *farm) provisionersUp() error {
	for _, p := range f.providers { // hosts have a wire now
		if err := f.control(p, "", 0); err != nil {
			return err
		}
	}
	for _, name := range provisioners {
		if err := f.lay(name, map[string]string{"temporal": f.address}); err != nil {
			return err
		}
		config, err := f.writeConfig(name, name, map[string]any{"Controller": f.addressThrough(name), "Temporal": f.wires[name+">temporal"].Address()})
		if err != nil {
			return err
		}
		if _, err := f.part(name, nil, nil, "worker", "--config", config); err != nil {
			return err
		}
	}
	return f.eventually(40*time.Second, func(ctx context.Context) error {
		c, err := f.controllers[0].client.Catalog(ctx)
		if err == nil && (len(c.Templates) < 2 || len(c.Offers) < 3) {
			err = fmt.Errorf("%d templates and %d offers are published", len(c.Templates), len(c.Offers))
		}
		return err
	})
}

func (f *farm) agentsUp() error {
	for _, name := range ownHosts {
		config, err := f.writeConfig(name, name, map[string]any{"Controller": f.addressThrough(name)})
		if err != nil {
			return err
		}
		if _, err := f.part(name, nil, []string{"LOCAL_HOST=" + name}, "agent", "--config", config); err != nil {
			return err
		}
	}
	return f.eventually(20*time.Second, func(ctx context.Context) error {
		st, err := f.controllers[0].client.Status(ctx)
		if err == nil && len(st.Hosts) < len(ownHosts) {
			err = fmt.Errorf("%d hosts have joined", len(st.Hosts))
		}
		return err
	})
}

// eventually repeats a question until it is answered without error.
func (f *farm) eventually(within time.Duration, ask func(context.Context) error) error {
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		err = ask(ctx)
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("after %s: %w", within, err)
}

// end ends all that is left of the cluster, and keeps the logs of one that failed.
func (f *farm) end() {
	defer func() {
		if f.t.Failed() {
			f.keepLogs()
		}
	}()
	for _, name := range f.order {
		f.processes[name].signal(syscall.SIGCONT)
		f.processes[name].end(syscall.SIGKILL, time.Second)
	}
	for _, w := range f.wires {
		_ = w.Close()
	}
	for _, p := range f.providers {
		if !p.pool {
			if err := p.operate("stop"); err != nil {
				f.t.Log(err)
			}
		}
	}
	f.endStories()
}
