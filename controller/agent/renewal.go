package agent

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// lookForRenewal is how often it is looked whether the certificate is to be renewed.
const lookForRenewal = time.Hour

// renewal renews the certificate that a host got when it joined, for the key that
// it has. So there is one file to replace, and no moment at which two do not fit.
type renewal struct {
	host, folder string
	client       *api.Client
	log          *slog.Logger
	now          func() time.Time
}

// run renews the certificate whenever it is time to, until ctx ends.
func (r *renewal) run(ctx context.Context) {
	tick := time.NewTicker(lookForRenewal)
	defer tick.Stop()
	for {
		if err := r.renew(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("the host's certificate could not be renewed; trying again in an hour", "host", r.host, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// renew renews the certificate if less than a third of its life is left.
func (r *renewal) renew(ctx context.Context) error {
	cert, err := pki.ReadCertificate(filepath.Join(r.folder, hostFile+".crt"))
	if err != nil || !isDue(cert, r.now()) {
		return err
	}
	request, err := keyIn(r.folder)
	if err != nil {
		return err
	}
	certificate, err := r.client.RenewCertificate(ctx, r.host, string(request))
	if err != nil {
		return err
	}
	if err := keep(r.folder, hostFile+".crt", []byte(certificate)); err != nil {
		return fmt.Errorf("keep the renewed certificate: %w", err)
	}
	r.log.Info("the host's certificate was renewed", "host", r.host)
	return nil
}

func isDue(cert *x509.Certificate, now time.Time) bool {
	return now.After(cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / 3))
}
