package controller

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// RenewCertificate answers another certificate of a host that a provider made,
// with the same name and id. Only one that stands for something gets it, and
// every one is written down.
func (s *Service) RenewCertificate(ctx context.Context, peer pki.Peer, in api.RenewalRequest) (api.Renewed, error) {
	if peer.ID == "" {
		return api.Renewed{}, refuse(http.StatusConflict, "the certificate of %s was issued by an administrator, who renews it with `xce-elastic cert renew`", peer.Name)
	}
	if s.config.Authority == nil {
		return api.Renewed{}, refuse(http.StatusConflict, "this controller makes no certificates; set controller.ca_key to the key of its authority")
	}
	if _, err := pki.RequestKey([]byte(in.Request)); err != nil {
		return api.Renewed{}, refuse(http.StatusUnprocessableEntity, "the certificate request cannot be read: %v", err)
	}
	var renewed api.Renewed
	err := s.add(ctx, peer.String(), func(w *work) error {
		row, found, err := w.ElasticHost(peer.ID)
		if err != nil {
			return err
		}
		if !found || row.Name != peer.Name || !row.State.Here() {
			return refuse(http.StatusGone, "host %s is not here any more, so that its certificate is not renewed", peer.Name)
		}
		certificate, err := s.config.Authority.SignRequest([]byte(in.Request), pki.Peer{Role: string(api.HostRole), Name: row.Name, ID: row.ID})
		if err != nil {
			return err
		}
		renewed.Certificate = string(certificate)
		serial, until, err := pki.Described(certificate)
		if err != nil {
			return err
		}
		return w.record(api.Change{Kind: api.KindRenewed, Subject: row.ID, Why: fmt.Sprintf("renewed its certificate: serial %s, until %s", serial, until.Format(time.RFC3339))}, nil, nil)
	})
	return renewed, err
}
