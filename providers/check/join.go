package check

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"time"

	"xce.internal/elastic/providers"
)

// join is what a host of this check is told: to join where nobody answers, with a token that no cluster knows.
func join(id string) *providers.Join {
	return &providers.Join{
		Host: id, Controller: "https://controller.invalid:443", CA: authority(), Token: "check-" + rand.Text(),
		Deadline: time.Now().Add(patience).UTC().Truncate(time.Second),
	}
}

// authority is the certificate of nobody: its key is forgotten at once.
var authority = sync.OnceValue(func() string {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // the curve is a good one
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "provider check"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err) // so is the template
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
})
