package controller

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"time"
)

// Revocations tells which certificates are good no more.
type Revocations interface {
	Revoked(cert *x509.Certificate) bool
}

// RefuseRevoked has the server refuse callers with a certificate that was revoked.
func (s *Server) RefuseRevoked(r Revocations) { s.revocations = r }

// longestConnection is how long a connection is used. Whoever calls connects
// anew then, with a certificate that may have been renewed.
const longestConnection = 15 * time.Minute

// begunKey is where a connection's context keeps when it began.
type begunKey struct{}

func noteBegin(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, begunKey{}, time.Now())
}

// outOfDate tells why a certificate is good no more, which is asked at every call:
// it may have become so since its connection began. Empty means that it is good.
func (s *Server) outOfDate(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	cert := r.TLS.PeerCertificates[0]
	switch {
	case s.revocations != nil && s.revocations.Revoked(cert):
		return "the caller's certificate was revoked; ask an administrator for another"
	case time.Now().After(cert.NotAfter):
		return "the caller's certificate has ended; it must be renewed"
	}
	return ""
}

// letGo has the connection end after this call where it is old.
func letGo(w http.ResponseWriter, r *http.Request) {
	if begun, ok := r.Context().Value(begunKey{}).(time.Time); ok && time.Since(begun) > longestConnection {
		w.Header().Set("Connection", "close")
	}
}
