package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	requestBlock     = "CERTIFICATE REQUEST"
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// NewRequest makes a key and a request for a certificate of it, both PEM. The key
// stays with who asks.
func NewRequest() (key, request []byte, err error) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, secret)
	if err != nil {
		return nil, nil, fmt.Errorf("make certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: encoded}), pem.EncodeToMemory(&pem.Block{Type: requestBlock, Bytes: der}), nil
}

// RequestKey answers the hash of the key that a PEM request is for.
func RequestKey(request []byte) (string, error) {
	parsed, err := readRequest(request)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKIXPublicKey(parsed.PublicKey)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

func readRequest(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != requestBlock {
		return nil, errors.New("there is no PEM block " + requestBlock)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read certificate request: %w", err)
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, fmt.Errorf("check certificate request: %w", err)
	}
	return parsed, nil
}

// Described answers the serial number of a PEM certificate, and its end.
func Described(certificate []byte) (serial string, until time.Time, err error) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return "", until, errors.New("there is no PEM block " + certificateBlock)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", until, fmt.Errorf("read certificate: %w", err)
	}
	return SerialOf(cert), cert.NotAfter.UTC(), nil
}

// SignRequest answers the certificate, PEM, of a peer for the key of a PEM
// request. Of the request nothing else is used.
func (a *Authority) SignRequest(request []byte, peer Peer) ([]byte, error) {
	parsed, err := readRequest(request)
	if err != nil {
		return nil, err
	}
	template, err := peer.template(a.until(LeafLife))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, parsed.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", peer, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der}), nil
}
