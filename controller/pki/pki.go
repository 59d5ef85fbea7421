// Package pki is the certificates of a cluster: an authority, certificates by
// role, and the TLS configurations of both sides. A peer's role and name are in
// its certificate's URI name, such as xce://provisioner/p1.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"xce.internal/elastic/cluster/private"
)

// Peer is who a certificate says its holder is.
type Peer struct {
	Role string
	Name string
	// ID is that of an elastic host, whose name another may have later.
	ID string
}

// String answers role/name, as audit records have it.
func (p Peer) String() string { return p.Role + "/" + p.Name }

// PeerOf reads the peer of a verified connection.
func PeerOf(state *tls.ConnectionState) (Peer, error) {
	if state == nil || len(state.VerifiedChains) == 0 {
		return Peer{}, errors.New("the caller has no verified certificate")
	}
	for _, uri := range state.PeerCertificates[0].URIs {
		name := strings.TrimPrefix(uri.Path, "/")
		if uri.Scheme == "xce" && uri.Host != "" && name != "" {
			return Peer{Role: uri.Host, Name: name, ID: uri.Query().Get("id")}, nil
		}
	}
	return Peer{}, errors.New("the caller's certificate has no name of the form xce://ROLE/NAME")
}

const (
	caName   = "ca"
	caLife   = 10 * 365 * 24 * time.Hour
	leafLife = 365 * 24 * time.Hour
)

// uri is the name by which a certificate says who its holder is.
func (p Peer) uri() *url.URL {
	u := &url.URL{Scheme: "xce", Host: p.Role, Path: "/" + p.Name}
	if p.ID != "" {
		u.RawQuery = url.Values{"id": {p.ID}}.Encode()
	}
	return u
}

// Authority issues certificates into a folder: NAME.crt and NAME.key, PEM.
type Authority struct {
	folder string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// LoadAuthority reads the authority of a certificate and its key, PEM files.
func LoadAuthority(certFile, keyFile string) (*Authority, error) {
	a := &Authority{folder: filepath.Dir(certFile)}
	return a, a.load(certFile, keyFile)
}

// OpenAuthority reads the authority of a folder, and makes it where there is
// none. One of which the key is kept elsewhere is not overwritten.
func OpenAuthority(folder string) (*Authority, error) {
	a := &Authority{folder: folder}
	if isAbsent(a.path(caName, ".crt")) && isAbsent(a.path(caName, ".key")) {
		return a, a.create()
	}
	return a, a.load(a.path(caName, ".crt"), a.path(caName, ".key"))
}

func (a *Authority) load(certFile, keyFile string) error {
	if err := private.Check(keyFile); err != nil {
		return fmt.Errorf("key of the certificate authority: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return fmt.Errorf("read certificate authority in %s: %w", a.folder, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("certificate authority in %s has a key that is not ECDSA; make a new one in an empty folder", a.folder)
	}
	a.key = key
	a.cert, err = x509.ParseCertificate(pair.Certificate[0])
	return err
}

func isAbsent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (a *Authority) path(name, ending string) string { return filepath.Join(a.folder, name+ending) }

func (a *Authority) create() error {
	if err := private.Folder(a.folder); err != nil {
		return fmt.Errorf("make certificate folder: %w", err)
	}
	template, err := newTemplate("XCE Elastic certificate authority", caLife)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	a.cert = template
	return a.sign(caName, template, a.key)
}

// Issue makes a certificate for a peer, into the files NAME.crt and NAME.key.
// hosts are the addresses it may serve at; none makes it a client's only.
func (a *Authority) Issue(file string, peer Peer, hosts ...string) error {
	template, err := peer.template()
	if err != nil {
		return err
	}
	if len(hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	return a.sign(file, template, key)
}

// template is a client's certificate before it is signed.
func (p Peer) template() (*x509.Certificate, error) {
	template, err := newTemplate(p.String(), leafLife)
	if err != nil {
		return nil, err
	}
	template.URIs = []*url.URL{p.uri()}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return template, nil
}

func newTemplate(name string, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-5 * time.Minute), NotAfter: now.Add(life),
	}, nil
}

// sign signs a certificate and writes it with its key, the key readable by its owner only.
func (a *Authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	if template == a.cert {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return fmt.Errorf("read back certificate: %w", err)
		}
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	if err := private.Write(a.path(file, ".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	if err := os.WriteFile(a.path(file, ".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	return nil
}

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

func (f Files) load() (*x509.CertPool, tls.Certificate, error) {
	if err := private.Check(f.Key); err != nil {
		return nil, tls.Certificate{}, fmt.Errorf("key of certificate %s: %w", f.Cert, err)
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, pair, fmt.Errorf("read certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	ca, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, pair, fmt.Errorf("read certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, pair, fmt.Errorf("certificate authority %s holds no PEM certificate", f.CA)
	}
	return pool, pair, nil
}

// Server answers the TLS configuration of a controller: a caller's certificate
// must be one of its own authority. Who has none is for the caller of it to judge.
func (f Files) Server() (*tls.Config, error) {
	pool, pair, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair},
		ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, NextProtos: []string{"h2", "http/1.1"},
	}, nil
}

// Client answers the TLS configuration of a peer.
func (f Files) Client() (*tls.Config, error) {
	pool, pair, err := f.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}
