package pki

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// issuedName is the file in which the authority notes what it issued, so that a
// certificate whose file is gone can still be revoked.
const issuedName = "ca.issued"

// Issued is a certificate that an authority issued.
type Issued struct {
	File    string     `json:"file"`
	Peer    string     `json:"peer"`
	Serial  string     `json:"serial"`
	Until   time.Time  `json:"until"`
	Revoked *time.Time `json:"revoked,omitempty"`
	// Replaced tells that the file holds another by now.
	Replaced bool `json:"replaced,omitempty"`
}

// SerialOf writes a certificate's serial number.
func SerialOf(cert *x509.Certificate) string { return cert.SerialNumber.Text(16) }

// note notes a certificate that was issued.
func (a *Authority) note(file string, cert *x509.Certificate) error {
	line, err := json.Marshal(issuedAs(file, cert))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(a.folder, issuedName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("note what was issued: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

func issuedAs(file string, cert *x509.Certificate) Issued {
	peer := cert.Subject.CommonName
	if p, err := NamedIn(cert); err == nil {
		peer = p.String()
	}
	return Issued{File: file, Peer: peer, Serial: SerialOf(cert), Until: cert.NotAfter.UTC()}
}

// ListIssued answers what the authority of a folder issued into it, and what was
// revoked, for which the authority's key is not needed.
func ListIssued(folder string) ([]Issued, error) {
	issued, err := readNotes(filepath.Join(folder, issuedName))
	if err != nil {
		return nil, err
	}
	present, err := readFolder(folder)
	if err != nil {
		return nil, err
	}
	for i, old := range issued {
		issued[i].Replaced = !slices.ContainsFunc(present, func(p Issued) bool { return p.Serial == old.Serial })
	}
	for _, p := range present {
		if !slices.ContainsFunc(issued, func(i Issued) bool { return i.Serial == p.Serial }) {
			issued = append(issued, p) // before there were notes
		}
	}
	return markRevoked(folder, issued)
}

func readNotes(path string) (issued []Issued, err error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var i Issued
		if err == nil {
			err = json.Unmarshal([]byte(line), &i)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s, line %d: %w", path, n+1, err)
		}
		issued = append(issued, i)
	}
	return issued, nil
}

// readFolder answers the certificates that are in a folder.
func readFolder(folder string) (present []Issued, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.crt"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		file := strings.TrimSuffix(filepath.Base(path), ".crt")
		if file == caName {
			continue
		}
		cert, err := ReadCertificate(path)
		if err != nil {
			return nil, err
		}
		present = append(present, issuedAs(file, cert))
	}
	return present, nil
}

func markRevoked(folder string, issued []Issued) ([]Issued, error) {
	ca, err := ReadCertificate(filepath.Join(folder, caName+".crt"))
	if err != nil {
		return nil, err
	}
	list, err := readList(filepath.Join(folder, listName), []*x509.Certificate{ca})
	if errors.Is(err, fs.ErrNotExist) {
		return issued, nil
	}
	if err != nil {
		return nil, err
	}
	for _, entry := range list.RevokedCertificateEntries {
		at, serial := entry.RevocationTime.UTC(), entry.SerialNumber.Text(16)
		i := slices.IndexFunc(issued, func(i Issued) bool { return i.Serial == serial })
		if i < 0 { // one that a controller made for a host
			i, issued = len(issued), append(issued, Issued{Serial: serial})
		}
		issued[i].Revoked = &at
	}
	return issued, nil
}

// ReadSerial reads a serial number as SerialOf writes it.
func ReadSerial(text string) (*big.Int, error) {
	serial, ok := new(big.Int).SetString(strings.ReplaceAll(text, ":", ""), 16)
	if !ok || serial.Sign() <= 0 {
		return nil, fmt.Errorf("%q is no serial number; write it as `xce-elastic cert list` shows it", text)
	}
	return serial, nil
}
