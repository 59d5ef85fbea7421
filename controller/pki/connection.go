package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"xce.internal/elastic/controller/pki/reread"
)

// Files are the PEM files of one side of a TLS connection.
type Files struct {
	CA   string `mapstructure:"ca"`
	Cert string `mapstructure:"cert"`
	Key  string `mapstructure:"key"`
}

// In answers the files of a certificate issued into a folder.
func In(folder, file string) Files {
	return Files{
		CA:   filepath.Join(folder, caName+".crt"),
		Cert: filepath.Join(folder, file+".crt"), Key: filepath.Join(folder, file+".key"),
	}
}

// Pool answers the authorities that are trusted.
func (f Files) Pool() (*x509.CertPool, error) {
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("certificate authority %s holds no PEM certificate", f.CA)
	}
	return pool, nil
}

// pair is a certificate with its key, which are read again when they were
// renewed. While the two do not fit each other, as when only one has been
// written yet, those before stay in use.
func (f Files) pair(log *slog.Logger) (*reread.File[*tls.Certificate], error) {
	return reread.Open(func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("read certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		return &pair, nil
	}, func(err error) {
		log.Error("a renewed certificate cannot be used; the one before it stays", "error", err)
	}, f.Cert, f.Key)
}

// Server answers the TLS configuration of a controller: a caller's certificate
// must be one of its own authority. Who has none is for the caller of it to judge.
// A renewed certificate is taken up with the next connection.
func (f Files) Server() (*tls.Config, error) { return f.ServerLogging(slog.New(slog.DiscardHandler)) }

// ServerLogging is Server, and logs where a renewed certificate cannot be used.
func (f Files) ServerLogging(log *slog.Logger) (*tls.Config, error) {
	pair, err := f.pair(log)
	if err != nil {
		return nil, err
	}
	pool, err := f.Pool()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
		// Whoever comes again shows its certificate again, which may be another by then.
		SessionTicketsDisabled: true,
	}, nil
}

// Client answers the TLS configuration of a peer. A renewed certificate is taken
// up with the next connection.
func (f Files) Client() (*tls.Config, error) { return f.ClientLogging(slog.New(slog.DiscardHandler)) }

// ClientLogging is Client, and logs where a renewed certificate cannot be used.
func (f Files) ClientLogging(log *slog.Logger) (*tls.Config, error) {
	present, err := f.Presenting(log)
	if err != nil {
		return nil, err
	}
	pool, err := f.Pool()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool, GetClientCertificate: present}, nil
}

// Presenting answers what a client presents its certificate with, to a server whose
// authority is not ours. A renewed one is taken up with the next connection.
func (f Files) Presenting(log *slog.Logger) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	pair, err := f.pair(log)
	if err != nil {
		return nil, err
	}
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.Get(), nil }, nil
}

// Anonymous answers the TLS configuration of a client that has no certificate
// yet, and trusts the authority of a PEM certificate.
func Anonymous(authority []byte) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("the certificate authority holds no PEM certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool}, nil
}
