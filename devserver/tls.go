package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"go.temporal.io/server/common/config"
)

// security is the front end's TLS: callers must have a certificate of the
// authority. The server calls itself with its own certificate, which so must be
// one of a client too.
type security struct {
	ca, cert, key string // PEM files; all or none
}

func (s security) on() bool { return s != security{} }

func (s security) check() error {
	if s.on() && (s.ca == "" || s.cert == "" || s.key == "") {
		return errors.New("--tls-ca, --tls-cert and --tls-key go together: give all three or none")
	}
	return nil
}

// server is the setting of the services; name is how the front end is called.
func (s security) server(name string) config.RootTLS {
	if !s.on() {
		return config.RootTLS{}
	}
	client := config.ClientTLS{ServerName: name, RootCAFiles: []string{s.ca}}
	return config.RootTLS{
		Frontend: config.GroupTLS{
			Server: config.ServerTLS{CertFile: s.cert, KeyFile: s.key, ClientCAFiles: []string{s.ca}, RequireClientAuth: true},
			Client: client,
		},
		SystemWorker: config.WorkerTLS{CertFile: s.cert, KeyFile: s.key, Client: client},
	}
}

// ui is the setting of the UI, as a client of the front end.
func (s security) ui(name string) uiconfig.TLS {
	if !s.on() {
		return uiconfig.TLS{}
	}
	return uiconfig.TLS{CaFile: s.ca, CertFile: s.cert, KeyFile: s.key, EnableHostVerification: true, ServerName: name}
}

// client is our own, as a client of the front end; nil without TLS.
func (s security) client(name string) (*tls.Config, error) {
	if !s.on() {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.cert, s.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", s.cert, s.key, err)
	}
	ca, err := os.ReadFile(s.ca)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("--tls-ca %s holds no PEM certificate", s.ca)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: name}, nil
}
