// Package pki is the certificates of a cluster: an authority, certificates by
// role, and the TLS configurations of both sides. A peer's role and name are in
// its certificate's URI name, such as xce://provisioner/p1.
package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
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
	return NamedIn(state.PeerCertificates[0])
}

// NamedIn reads the peer that a certificate names.
func NamedIn(cert *x509.Certificate) (Peer, error) {
	for _, uri := range cert.URIs {
		name := strings.TrimPrefix(uri.Path, "/")
		if uri.Scheme == "xce" && uri.Host != "" && name != "" {
			return Peer{Role: uri.Host, Name: name, ID: uri.Query().Get("id")}, nil
		}
	}
	return Peer{}, errors.New("the caller's certificate has no name of the form xce://ROLE/NAME")
}

// uri is the name by which a certificate says who its holder is.
func (p Peer) uri() *url.URL {
	u := &url.URL{Scheme: "xce", Host: p.Role, Path: "/" + p.Name}
	if p.ID != "" {
		u.RawQuery = url.Values{"id": {p.ID}}.Encode()
	}
	return u
}
