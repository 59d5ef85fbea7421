//go:build e2e

package dev

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/starter/codec"
	"xce.internal/elastic/workflows"
)

// privately is the brisk cluster with a Temporal server that demands certificates,
// in which nothing is to be read.
func privately(t *testing.T) (f *farm, keys string) {
	t.Helper()
	e := brisk
	e.Cluster = strings.Replace(e.Cluster, "  namespace: {{.Namespace}}\n",
		"  namespace: {{.Namespace}}\n  tls: {ca: pki/ca.crt, cert: pki/provisioner.crt, key: pki/provisioner.key}\n  codec: {keys: codec.keys}\n", 1)
	e.Cluster = strings.Replace(e.Cluster, "  state: controller.db\n", "  state: controller.db\n  tls: {crl: pki/ca.crl}\n", 1)
	e.Server = []string{"--tls-ca", "pki/ca.crt", "--tls-cert", "pki/controller.crt", "--tls-key", "pki/controller.key"}
	f = &farm{example: e, Options: Options{
		Folder: t.TempDir(), Program: filepath.Join(programs(t), "xce-elastic"), Out: new(bytes.Buffer), Temporal: client.Options{Namespace: "xce"},
	}}
	t.Cleanup(func() {
		if err := f.stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			f.printLogs(t)
		}
	})
	keys = f.path("codec.keys")
	if _, err := codec.AddKey(keys); err != nil {
		t.Fatal(err)
	}
	if err := f.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f, keys
}

// dial connects with a certificate, and reads what Temporal has as it is.
func (f *farm) dial(config *tls.Config) (client.Client, error) {
	return client.Dial(client.Options{HostPort: f.temporal, Namespace: "xce", Logger: silent{}, ConnectionOptions: client.ConnectionOptions{TLS: config}})
}

// histories answers all histories that Temporal has.
func histories(t *testing.T, c client.Client) (all []*history.History) {
	t.Helper()
	list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list.GetExecutions() {
		h := &history.History{}
		for events := c.GetWorkflowHistory(t.Context(), e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			event, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			h.Events = append(h.Events, event)
		}
		all = append(all, h)
	}
	return all
}

// keysOf counts the payloads of histories by the key that encrypted them; "" are
// those that anyone can read.
func keysOf(t *testing.T, all []*history.History) map[string]int {
	t.Helper()
	keys := map[string]int{}
	for _, h := range all {
		err := proxy.VisitPayloads(context.Background(), h, proxy.VisitPayloadsOptions{SkipSearchAttributes: true, Visitor: func(v *proxy.VisitPayloadsContext, ps []*common.Payload) ([]*common.Payload, error) {
			for _, p := range ps {
				id := string(p.GetMetadata()["encryption-key-id"])
				if keys[id]++; id == "" {
					t.Logf("in %T: %v", v.Parent, p)
				}
			}
			return ps, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// borrows has a job borrow tokens, and waits until they are back.
func (f *farm) borrows(t *testing.T, name string) {
	t.Helper()
	f.submitOnce(t, cluster.JobSpec{Name: name, CPUs: 1, Tokens: map[string]int64{resource: 4}, Command: []string{"sleep", "1"}})
	eventually(t, time.Minute, func() error {
		jobs, err := f.controller.Jobs(t.Context(), "")
		for _, j := range jobs {
			if j.State != cluster.JobDone {
				err = fmt.Errorf("job %s is %s: %s", j.Name, j.State, j.Why)
			}
		}
		if err != nil {
			return err
		}
		loans, err := f.controller.Loans(t.Context(), false)
		if err == nil && len(loans) > 0 {
			err = fmt.Errorf("%d loans are open", len(loans))
		}
		return err
	})
}

// TestAFarmWorksWhereTemporalDemandsCertificatesAndReadsNothing has loans come and
// go over mTLS with encrypted payloads, changes the key meanwhile, and replays the
// histories.
func TestAFarmWorksWhereTemporalDemandsCertificatesAndReadsNothing(t *testing.T) {
	t.Parallel()
	f, keys := privately(t)
	f.borrows(t, "first")

	ids, err := codec.AddKey(keys)
	if err != nil {
		t.Fatal(err)
	}
	old, next := ids[0], ids[1]
	f.does(t, "codec use "+next+" --file "+keys, next+" encrypts, and "+old+" only decrypt")
	// Without a restart, the certificate of the connection and of the calls is another.
	f.does(t, "cert renew provisioner --folder "+f.path("pki"))
	f.borrows(t, "second")
	f.kill("worker")
	if err := f.startWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.borrows(t, "third")
	f.does(t, "provider believe "+poolName+" --yes", `taken at its word`)

	own, err := pki.In(f.path("pki"), "provisioner").Client()
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.dial(own)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := histories(t, c)
	count := keysOf(t, all)
	if count[""] > 0 || count[old] == 0 || count[next] == 0 || len(count) != 2 || len(all) < 4 {
		t.Errorf("the payloads of %d histories by key are %v", len(all), count)
	}
	t.Logf("payloads of %d histories by key: %v", len(all), count)
	if details := encodingOfDetails(t, c); details != "binary/encrypted" {
		t.Errorf("the details of the provider's story are %q", details)
	}
	f.refusesStrangers(t)

	f.does(t, "simulate record-histories --out "+f.path("record"))
	f.does(t, "simulate --codec-keys "+keys+" --replay "+f.path("record"), `Every decision of the record is the one that this program makes`)
	f.refuses(t, "simulate --replay "+f.path("record"), `no keys are given.*--codec-keys`)
	if text, err := os.ReadFile(f.path("log/worker.log")); err != nil || strings.Contains(string(text), "level=ERROR") {
		t.Errorf("the provisioner's log: %s %v", text, err)
	}
}

// encodingOfDetails answers how Temporal is told what a story shows of itself.
func encodingOfDetails(t *testing.T, c client.Client) string {
	t.Helper()
	answer, err := c.QueryWorkflow(t.Context(), workflows.ProviderID(poolName), "", "__temporal_workflow_metadata")
	if err != nil {
		t.Fatal(err)
	}
	var raw converter.RawValue
	if err := answer.Get(&raw); err != nil {
		t.Fatal(err)
	}
	return string(raw.Payload().GetMetadata()[converter.MetadataEncoding])
}

// refusesStrangers checks that Temporal lets no one in without a certificate.
func (f *farm) refusesStrangers(t *testing.T) {
	t.Helper()
	pool, err := pki.In(f.path("pki"), "admin").Pool()
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{"no certificate": {RootCAs: pool, MinVersion: tls.VersionTLS13}, "no TLS": nil} {
		if c, err := f.dial(config); err == nil {
			c.Close()
			t.Errorf("one with %s is let in", name)
		}
	}
}

// TestARunningControllerRefusesACertificateFromItsRevocationOn revokes the
// certificate of an agent that works.
func TestARunningControllerRefusesACertificateFromItsRevocationOn(t *testing.T) {
	t.Parallel()
	f, _ := privately(t)
	in := " --folder " + f.path("pki")
	f.does(t, "cert revoke --role host --name node1"+in, `ca.crl is number 2, with 1 certificates`)
	f.does(t, "cert list"+in, `node1 +host/node1 +\w+ +\S+ +revoked 20`)
	eventually(t, 30*time.Second, func() error {
		log, err := os.ReadFile(f.path("log/agent.log"))
		if err == nil && !bytes.Contains(log, []byte("certificate was revoked")) {
			err = fmt.Errorf("the agent's log is %s", log)
		}
		return err
	})
	f.does(t, "cert issue --replace --role host --name node1"+in, `for host/node1 until`)
	f.submitOnce(t, cluster.JobSpec{Name: "again", CPUs: 1, Command: []string{"true"}})
	f.borrows(t, "and more")
}
