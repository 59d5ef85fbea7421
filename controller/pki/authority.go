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
	"time"

	"xce.internal/elastic/cluster/private"
)

// How long an authority, and what it signs, last where nothing else is said.
const (
	CALife   = 10 * 365 * 24 * time.Hour
	LeafLife = 365 * 24 * time.Hour
)

const caName = "ca"

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
	if a.isAbsent() {
		return a, a.create(CALife)
	}
	return a, a.load(a.path(caName, ".crt"), a.path(caName, ".key"))
}

// InitAuthority makes the authority of a folder, and refuses a folder that has
// one, or half of one.
func InitAuthority(folder string, life time.Duration) (*Authority, error) {
	a := &Authority{folder: folder}
	if !a.isAbsent() {
		return nil, fmt.Errorf("there is an authority in %s already, and what it issued would be good for nothing without it; name another folder", folder)
	}
	return a, a.create(life)
}

func (a *Authority) isAbsent() bool {
	return isAbsent(a.path(caName, ".crt")) && isAbsent(a.path(caName, ".key"))
}

// Certificate answers the authority's own certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

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

// create makes the authority, with a list of revoked certificates that is empty.
func (a *Authority) create(life time.Duration) error {
	if err := private.Folder(a.folder); err != nil {
		return fmt.Errorf("make certificate folder: %w", err)
	}
	template, err := newTemplate("XCE Elastic certificate authority", time.Now().Add(life))
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	a.cert = template
	if a.cert, err = a.sign(caName, template, a.key); err != nil {
		return err
	}
	_, err = a.Revoke(nil, ListLife)
	return err
}

// Issue makes a certificate for a peer, into the files NAME.crt and NAME.key.
// hosts are the addresses it may serve at; none makes it a client's only.
func (a *Authority) Issue(file string, peer Peer, hosts ...string) error {
	_, err := a.IssueFor(LeafLife, file, peer, hosts...)
	return err
}

// IssueFor is Issue for a given life, which the authority's own end cuts short.
func (a *Authority) IssueFor(life time.Duration, file string, peer Peer, hosts ...string) (*x509.Certificate, error) {
	template, err := peer.template(a.until(life))
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return a.issue(file, template)
}

// Renew replaces the certificate of a file by one for the same peer and
// addresses, with a new key and a new life.
func (a *Authority) Renew(file string, life time.Duration) (*x509.Certificate, error) {
	old, err := ReadCertificate(a.path(file, ".crt"))
	if err != nil {
		return nil, err
	}
	if err := old.CheckSignatureFrom(a.cert); err != nil {
		return nil, fmt.Errorf("%s is not of this authority and so is not renewed: %w", a.path(file, ".crt"), err)
	}
	peer, err := NamedIn(old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.path(file, ".crt"), err)
	}
	template, err := peer.template(a.until(life))
	if err != nil {
		return nil, err
	}
	template.IPAddresses, template.DNSNames = old.IPAddresses, old.DNSNames
	return a.issue(file, template)
}

// issue makes a key for a certificate, and signs both into a file. One that has
// addresses may serve there.
func (a *Authority) issue(file string, template *x509.Certificate) (*x509.Certificate, error) {
	if len(template.IPAddresses)+len(template.DNSNames) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	cert, err := a.sign(file, template, key)
	if err != nil {
		return nil, err
	}
	return cert, a.note(file, cert)
}

// until is the end of a life that begins now.
func (a *Authority) until(life time.Duration) time.Time {
	end := time.Now().Add(life)
	if end.After(a.cert.NotAfter) {
		return a.cert.NotAfter
	}
	return end
}

// template is a client's certificate before it is signed.
func (p Peer) template(until time.Time) (*x509.Certificate, error) {
	template, err := newTemplate(p.String(), until)
	if err != nil {
		return nil, err
	}
	template.URIs = []*url.URL{p.uri()}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return template, nil
}

func newTemplate(name string, until time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-5 * time.Minute), NotAfter: until,
	}, nil
}

// sign signs a certificate and writes it with its key, the key readable by its owner only.
func (a *Authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return cert, errors.Join(
		private.Replace(a.path(file, ".key"), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: secret})),
		writePublic(a.path(file, ".crt"), pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})))
}

// writePublic writes a file for all to read, whole or not at all, as others may read it meanwhile.
func writePublic(path string, data []byte) error {
	if err := os.Remove(path + ".new"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

// ReadCertificate reads the first certificate of a PEM file.
func ReadCertificate(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != certificateBlock {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read certificate %s: %w", path, err)
	}
	return cert, nil
}
