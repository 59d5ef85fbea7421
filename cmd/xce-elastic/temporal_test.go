package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/pki"
)

// frontend is as much of a Temporal server as a client greets.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	mu   sync.Mutex
	key  string // that callers must bear; empty where they need none
	seen []string
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) guard(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	bears := strings.Join(md.Get("authorization"), " ")
	if f.seen = append(f.seen, bears); f.key != "" && bears != "Bearer "+f.key {
		return nil, status.Error(codes.PermissionDenied, "wrong key")
	}
	return next(ctx, in)
}

// newFrontend serves with a certificate of an authority in the folder pki, and
// demands one of clients where mutual says so.
func newFrontend(t *testing.T, mutual bool) (f *frontend, address string) {
	t.Helper()
	ca, err := pki.OpenAuthority("pki")
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Issue("frontend", pki.Peer{Role: "controller", Name: "temporal"}, "temporal.example"); err != nil {
		t.Fatal(err)
	}
	if err := ca.Issue("p1", pki.Peer{Role: "provisioner", Name: "p1"}); err != nil {
		t.Fatal(err)
	}
	config, err := pki.In("pki", "frontend").Server()
	if err != nil {
		t.Fatal(err)
	}
	if config.ClientAuth = tls.NoClientCert; mutual {
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f = &frontend{}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.UnaryInterceptor(f.guard))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f, listener.Addr().String()
}

// greet connects to Temporal as the configuration says.
func greet(t *testing.T, c config.Temporal) error {
	t.Helper()
	options, err := temporalOptions(&config.Config{Temporal: c}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	connection, err := client.DialContext(t.Context(), options)
	if err == nil {
		connection.Close()
	}
	return err
}

// alone takes the settings of this machine's Temporal away.
func alone(t *testing.T) {
	t.Helper()
	for _, line := range os.Environ() {
		if name, _, _ := strings.Cut(line, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	t.Chdir(t.TempDir())
}

func TestTemporalIsReachedWithTheCertificateOfTheConfiguration(t *testing.T) {
	alone(t)
	_, address := newFrontend(t, true)
	full := config.TemporalTLS{CA: "pki/ca.crt", Cert: "pki/p1.crt", Key: "pki/p1.key", ServerName: "temporal.example"}
	for name, test := range map[string]struct {
		change func(*config.TemporalTLS)
		works  bool
	}{
		"all of it":              {func(*config.TemporalTLS) {}, true},
		"no certificate":         {func(c *config.TemporalTLS) { c.Cert, c.Key = "", "" }, false},
		"the machine's trust":    {func(c *config.TemporalTLS) { c.CA = "" }, false},
		"another server's name":  {func(c *config.TemporalTLS) { c.ServerName = "other.example" }, false},
		"a file that is missing": {func(c *config.TemporalTLS) { c.Key = "pki/p2.key" }, false},
		"a key alone":            {func(c *config.TemporalTLS) { c.Cert = "" }, false},
		"nothing":                {func(c *config.TemporalTLS) { *c = config.TemporalTLS{} }, false},
	} {
		c := config.Temporal{Address: address, TLS: full}
		test.change(&c.TLS)
		if err := greet(t, c); (err == nil) != test.works {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", "pki/p1.crt")
	t.Setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", "pki/p1.key")
	t.Setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", "pki/ca.crt")
	t.Setenv("TEMPORAL_TLS_SERVER_NAME", "temporal.example")
	if err := greet(t, config.Temporal{Address: address}); err != nil {
		t.Errorf("with Temporal's own variables: %v", err)
	}
}

func TestTheAPIKeyIsReadFromItsFileAtEveryCall(t *testing.T) {
	alone(t)
	f, address := newFrontend(t, false)
	f.key = "hunter2"
	c := config.Temporal{Address: address, TLS: config.TemporalTLS{CA: "pki/ca.crt", ServerName: "temporal.example"}, APIKeyFile: "key"}
	put := func(text string, mode os.FileMode) {
		t.Helper()
		_ = os.Remove("key")
		if err := os.WriteFile("key", []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("hunter2\n", 0o600)
	options, err := temporalOptions(&config.Config{Temporal: c}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatalf("%v; seen were %q", err, f.seen)
	}
	defer connection.Close()
	ask := func() error {
		_, err := connection.WorkflowService().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{})
		return err
	}
	f.mu.Lock()
	f.key = "hunter3"
	f.mu.Unlock()
	if err := ask(); err == nil {
		t.Error("the old key is taken")
	}
	put("hunter3\n", 0o600)
	if err := ask(); err != nil {
		t.Errorf("the new key is not taken: %v", err)
	}
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
	}{"for all": {"hunter3\n", 0o644}, "empty": {"\n", 0o600}, "of two lines": {"hunter3\nhunter4\n", 0o600}} {
		put(test.text, test.mode)
		if err := greet(t, c); err == nil || !strings.HasPrefix(err.Error(), "temporal.api_key_file: ") || strings.Contains(err.Error(), "hunter") {
			t.Errorf("a file %s gives %v", name, err)
		}
	}
	put("hunter3\n", 0o600)
	t.Setenv("TEMPORAL_TLS", "false")
	if err := greet(t, config.Temporal{Address: address, APIKeyFile: "key"}); err == nil || !strings.Contains(err.Error(), "for all to read") {
		t.Errorf("without TLS the key is sent: %v", err)
	}
}

func TestARenewedCertificateForTemporalIsTakenUp(t *testing.T) {
	alone(t)
	_, address := newFrontend(t, true)
	own, err := temporalTLS(config.TemporalTLS{CA: "pki/ca.crt", Cert: "pki/p1.crt", Key: "pki/p1.key", ServerName: "temporal.example"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	say(t, "cert renew p1")
	pair, err := own.GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if renewed, err := pki.ReadCertificate("pki/p1.crt"); err != nil || !pair.Leaf.Equal(renewed) {
		t.Errorf("the old one is presented: %v", err)
	}
	connection, err := tls.Dial("tcp", address, own)
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
	if own.MinVersion != tls.VersionTLS13 || own.InsecureSkipVerify || own.RootCAs.Equal(x509.NewCertPool()) {
		t.Errorf("the connection is not as safe as it was: %+v", own)
	}
}

func TestSecretsOfTemporalAreNotShown(t *testing.T) {
	alone(t)
	say(t, "codec keygen --file codec.keys")
	text, err := os.ReadFile("codec.keys")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("key", []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEMPORAL_API_KEY", "hunter3")
	t.Setenv("XCE_CONFIG", fileOf(t, "c.yaml", "cluster: {name: east}\ntemporal: {api_key_file: "+filepath.Join(must(os.Getwd()), "key")+", codec: {keys: "+filepath.Join(must(os.Getwd()), "codec.keys")+"}}\n"))
	shown := say(t, "config check -o yaml")
	secret := strings.Fields(strings.Split(string(text), "\n")[1])[1]
	if !strings.Contains(shown, "codec.keys") || strings.Contains(shown, secret) || strings.Contains(shown, "hunter") {
		t.Errorf("shown is\n%s", shown)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
