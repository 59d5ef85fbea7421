package pki

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"slices"
	"sync"
	"time"

	"xce.internal/elastic/controller/pki/reread"
)

// ListLife is how long a list of revoked certificates is good where nothing else is said.
const ListLife = 365 * 24 * time.Hour

const (
	listName  = caName + ".crl"
	listBlock = "X509 CRL"
	// expiresSoon is how long before its end a list is warned of.
	expiresSoon = 14 * 24 * time.Hour
	// warnEvery is how often at most.
	warnEvery = time.Hour
)

// Revoke adds serial numbers to the authority's list of revoked certificates, and
// signs it anew, for a life from now on. None makes the list last longer.
func (a *Authority) Revoke(serials []*big.Int, life time.Duration) (*x509.RevocationList, error) {
	now := time.Now()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now, NextUpdate: a.until(life)}
	old, err := readList(a.path(caName, ".crl"), []*x509.Certificate{a.cert})
	switch {
	case err == nil:
		list.Number.Add(old.Number, big.NewInt(1))
		list.RevokedCertificateEntries = old.RevokedCertificateEntries
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the list of revoked certificates is not replaced by one that has fewer: %w", err)
	}
	for _, serial := range serials {
		if !lists(list, serial) {
			list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: now})
		}
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the list of revoked certificates: %w", err)
	}
	return list, writePublic(a.path(caName, ".crl"), pem.EncodeToMemory(&pem.Block{Type: listBlock, Bytes: der}))
}

func lists(list *x509.RevocationList, serial *big.Int) bool {
	return slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(serial) == 0 })
}

// readList reads a list that one of the authorities signed.
func readList(path string, authorities []*x509.Certificate) (*x509.RevocationList, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read list of revoked certificates: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != listBlock {
		return nil, fmt.Errorf("%s holds no PEM block %s; copy the authority's %s there", path, listBlock, listName)
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read list of revoked certificates %s: %w", path, err)
	}
	if list.Number == nil {
		return nil, fmt.Errorf("%s: the list has no number", path)
	}
	for _, authority := range authorities {
		if list.CheckSignatureFrom(authority) == nil {
			return list, nil
		}
	}
	return nil, fmt.Errorf("%s is not signed by the certificate authority; copy that authority's %s there", path, listName)
}

// Revocations are the certificates that are good no more. The list is read again
// when its file changes; one that is not sound is not taken in place of one that is.
type Revocations struct {
	file *reread.File[*revoked]
	now  func() time.Time
	log  *slog.Logger

	mu     sync.Mutex
	warned time.Time
}

// revoked is a list in a form that is quick to ask.
type revoked struct {
	number  *big.Int
	until   time.Time
	serials map[string]bool
}

// OpenRevocations reads the list of a file, which an authority of the file ca
// must have signed and which must not have ended.
func OpenRevocations(path, ca string, now func() time.Time, log *slog.Logger) (*Revocations, error) {
	var last *revoked
	read := func() (*revoked, error) {
		next, err := readRevoked(path, ca, now())
		if err != nil {
			return nil, err
		}
		if last != nil && next.number.Cmp(last.number) < 0 {
			return nil, fmt.Errorf("%s has number %s, and the list before it %s; copy the newest there", path, next.number, last.number)
		}
		if last != nil {
			log.Info("the list of revoked certificates was read again", "file", path, "number", next.number, "revoked", len(next.serials))
		}
		last = next
		return next, nil
	}
	file, err := reread.Open(read, func(err error) {
		log.Error("the list of revoked certificates cannot be used; the one before it stays, and what was revoked since is not refused", "error", err)
	}, path)
	if err != nil {
		return nil, err
	}
	return &Revocations{file: file, now: now, log: log}, nil
}

func readRevoked(path, ca string, now time.Time) (*revoked, error) {
	authorities, err := readCertificates(ca)
	if err != nil {
		return nil, err
	}
	list, err := readList(path, authorities)
	if err != nil {
		return nil, err
	}
	if !now.Before(list.NextUpdate) {
		return nil, fmt.Errorf("%s ended on %s; `xce-elastic cert revoke` without names makes it anew", path, list.NextUpdate.UTC().Format(time.RFC3339))
	}
	r := &revoked{number: list.Number, until: list.NextUpdate, serials: map[string]bool{}}
	for _, entry := range list.RevokedCertificateEntries {
		r.serials[string(entry.SerialNumber.Bytes())] = true
	}
	return r, nil
}

// readCertificates reads all certificates of a PEM file.
func readCertificates(path string) (all []*x509.Certificate, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority %s: %w", path, err)
		}
		all = append(all, cert)
	}
	return all, nil
}

// Revoked tells whether a certificate of the authority is good no more.
func (r *Revocations) Revoked(cert *x509.Certificate) bool {
	list := r.file.Get()
	r.warn(list)
	return list.serials[string(cert.SerialNumber.Bytes())]
}

// warn says that the list ends soon, or has ended: it is used all the same, as a
// cluster that stands still would be no safer.
func (r *Revocations) warn(list *revoked) {
	now := r.now()
	if now.Before(list.until.Add(-expiresSoon)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.warned) < warnEvery {
		return
	}
	r.warned = now
	if now.Before(list.until) {
		r.log.Warn("the list of revoked certificates ends soon; make and copy a new one", "until", list.until)
	} else {
		r.log.Error("the list of revoked certificates has ended and stays in use; make and copy a new one, else the controller does not start again", "until", list.until)
	}
}
