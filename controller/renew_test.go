package controller_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/controllertest"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/controller/store"
)

// authorized is a yard whose controller has its authority's key, and in which the
// first host has joined with its certificate.
func authorized(t *testing.T) (y *yard, host *api.Client) {
	t.Helper()
	config := controllertest.Vcs(2, 10)
	config.Providers, config.Hosts = append(config.Providers, "cloud"), cluster.DefaultHostRules()
	c := controllertest.Open(t, store.Memory, config)
	c.IssueAuthority()
	c.Config.Authority = c.Authority
	if err := c.Reopen(c.Config); err != nil {
		t.Fatal(err)
	}
	c.Serve()
	y = &yard{&world{Controller: c, t: t, pool: c.Provisioner("p1", "cloud"), user: c.Client(api.Submitter, "ann")}, map[string]int64{}}
	y.must(y.pool.PublishCatalog(t.Context(), "cloud", api.Catalog{Offers: []cluster.Offer{}, Observations: []cluster.Observation{}, Templates: []cluster.Template{
		{Name: "small", Capacity: cluster.Capacity{CPUs: 16, MemoryMB: 64000}, Headroom: 20, Latency: cluster.Minute},
	}}))
	y.put(cluster.JobSpec{Command: []string{"true"}, CPUs: 16})
	y.Session()
	id := y.write(1, api.WriteHost{Intend: &cluster.HostRequest{ID: "host/small-1", Provider: "cloud", Template: "small", Jobs: []int64{1}, Reason: "job 1 waits"}})
	y.write(1, api.WriteHost{Expect: &api.ExpectHost{Instance: "i-1", Name: "m1"}})
	host = y.by(pki.Peer{Role: string(api.HostRole), Name: "m1", ID: id})
	y.must(host.Join(t.Context(), "m1", api.JoinHost{CPUs: 16, MemoryMB: 64000}))
	return y, host
}

// by answers a client of a peer, whose certificate it has made.
func (w *world) by(peer pki.Peer) *api.Client {
	w.t.Helper()
	w.must(w.Authority.Issue("peer", peer))
	files := pki.In(w.Certificates, "peer")
	config, err := files.Client()
	w.must(err)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	w.must(err)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	client := api.NewClient("https://"+w.Address, config)
	w.t.Cleanup(client.Close)
	return client
}

func aRequest(t *testing.T) string {
	t.Helper()
	_, request, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return string(request)
}

func TestAHostRenewsItsOwnCertificateAndThatIsWrittenDown(t *testing.T) {
	t.Parallel()
	y, host := authorized(t)
	before := y.Status().Revision
	text, err := host.RenewCertificate(t.Context(), "m1", aRequest(t))
	y.must(err)
	block, _ := pem.Decode([]byte(text))
	cert, err := x509.ParseCertificate(block.Bytes)
	y.must(err)
	if peer, err := pki.NamedIn(cert); err != nil || peer != (pki.Peer{Role: "host", Name: "m1", ID: "host/small-1"}) {
		t.Errorf("the certificate is for %+v, %v", peer, err)
	}
	changes := y.changes(before)
	if len(changes) != 1 || changes[0].Subject != "host/small-1" || !strings.Contains(changes[0].Why, pki.SerialOf(cert)) {
		t.Errorf("written down is %+v", changes)
	}
}

func TestOnlyAHostThatIsHereGetsAnotherCertificate(t *testing.T) {
	t.Parallel()
	y, host := authorized(t)
	ctx := t.Context()
	_, err := host.RenewCertificate(ctx, "m2", aRequest(t))
	y.wantStatus(http.StatusForbidden, err)
	_, err = host.RenewCertificate(ctx, "m1", "no request")
	y.wantStatus(http.StatusUnprocessableEntity, err)
	for name, peer := range map[string]struct {
		pki.Peer
		want int
	}{
		"another's id":               {pki.Peer{Role: "host", Name: "m1", ID: "host/small-2"}, http.StatusGone},
		"another's name":             {pki.Peer{Role: "host", Name: "m2", ID: "host/small-1"}, http.StatusGone},
		"an administrator issued it": {pki.Peer{Role: "host", Name: "node1"}, http.StatusConflict},
	} {
		if _, err := y.by(peer.Peer).RenewCertificate(ctx, peer.Name, aRequest(t)); status(err) != peer.want {
			t.Errorf("%s: %v, want %d", name, err, peer.want)
		}
	}
	y.write(1, api.WriteHost{Drain: &cluster.Drain{By: "bob", Why: "its key leaked"}})
	_, err = host.RenewCertificate(ctx, "m1", aRequest(t))
	y.must(err) // its jobs run on
	y.write(1, api.WriteHost{Fence: true})
	_, err = host.RenewCertificate(ctx, "m1", aRequest(t))
	y.wantStatus(http.StatusGone, err)
}
