package main

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/pki"
)

// authorityIn reads the authority of a folder, and makes none.
func authorityIn(folder string) (*pki.Authority, error) {
	files := pki.In(folder, "ca")
	return pki.LoadAuthority(files.Cert, files.Key)
}

func newCertRenew() *cobra.Command {
	cmd := &cobra.Command{
		Use: "renew FILE... | renew --within DAYS", Short: "Renew certificates, with new keys",
		Long: "Replace certificates in the folder by others for the same peers, with new keys; do so before they end.\n" +
			"Copy both files to where they are used, the key first: they are taken up without a restart. The old ones\n" +
			"are good until their own end, unless they are revoked.",
		Example: "  xce-elastic cert renew provisioner node1\n  xce-elastic cert renew --within 60",
	}
	folder := folderFlag(cmd.Flags())
	life := lifeFlag(cmd.Flags(), pki.LeafLife, "how many days they last, at most until their authority ends")
	var within days
	cmd.Flags().Var(&within, "within", "renew all that end within so many days")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if (len(files) > 0) == (within > 0) {
			return errors.New("name the files of the certificates, without ending, as in `xce-elastic cert renew provisioner`; or say --within 60")
		}
		ca, err := authorityIn(*folder)
		if err != nil {
			return err
		}
		issued, err := pki.ListIssued(*folder)
		if err != nil {
			return err
		}
		if within > 0 {
			files = endingBefore(issued, time.Now().Add(within.length()))
		}
		for _, file := range files {
			if err := mayRenew(issued, file); err != nil {
				return err
			}
		}
		for _, file := range files {
			cert, err := ca.Renew(file, life.length())
			if err != nil {
				return err
			}
			if err := sayIssued(cmd.OutOrStdout(), *folder, file, cert.NotAfter, cert.Subject.CommonName); err != nil {
				return err
			}
		}
		if len(files) == 0 {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "no certificate in %s ends within %s days\n", *folder, &within)
		}
		return err
	}
	return cmd
}

// endingBefore answers the files of the certificates that end before a time.
func endingBefore(issued []pki.Issued, end time.Time) (files []string) {
	for _, i := range issued {
		if !i.Replaced && i.Revoked == nil && i.File != "" && i.Until.Before(end) {
			files = append(files, i.File)
		}
	}
	return files
}

// mayRenew refuses a file that is none of the folder's, or was revoked.
func mayRenew(issued []pki.Issued, file string) error {
	i := slices.IndexFunc(issued, func(i pki.Issued) bool { return i.File == file && !i.Replaced })
	if i < 0 || !cluster.ValidName(file) {
		return fmt.Errorf("there is no certificate %q in the folder; `xce-elastic cert list` shows those that there are", file)
	}
	if issued[i].Revoked != nil {
		return fmt.Errorf("the certificate %s was revoked; if its peer is to have another, use `xce-elastic cert issue --replace`", file)
	}
	return nil
}

func newCertRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke", Short: "Revoke certificates, and sign the list of revoked ones", Args: cobra.NoArgs,
		Long: "Revoke certificates: write them to the authority's list, ca.crl, and sign it anew. Copy it to every controller,\n" +
			"to the place that controller.tls.crl names; it is taken up without a restart.\n" +
			"Without certificates the list is only signed anew, so that it lasts longer.",
		Example: "  xce-elastic cert revoke --file provisioner\n  xce-elastic cert revoke --serial 6f1c0a\n" +
			"  xce-elastic cert revoke --role provisioner --name p1    # all that it ever had\n  xce-elastic cert revoke",
	}
	flags := cmd.Flags()
	folder := folderFlag(flags)
	file := flags.String("file", "", "the certificate of a file: its name without ending, or a path that ends in .crt")
	serial := flags.String("serial", "", "the certificate with a serial number, as `xce-elastic cert list` and audit records of hosts show it")
	role := flags.String("role", "", "all certificates of a peer: its role")
	name := flags.String("name", "", "all certificates of a peer: its name")
	life := lifeFlag(flags, pki.ListLife, "how many days the list lasts")
	cmd.MarkFlagsMutuallyExclusive("file", "serial", "role")
	cmd.MarkFlagsRequiredTogether("role", "name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ca, err := authorityIn(*folder)
		if err != nil {
			return err
		}
		var serials []*big.Int
		switch {
		case *file != "":
			serials, err = serialOfFile(ca, *folder, *file)
		case *serial != "":
			serials = make([]*big.Int, 1)
			serials[0], err = pki.ReadSerial(*serial)
		case *role != "":
			serials, err = serialsOf(*folder, *role, *name)
		}
		if err != nil {
			return err
		}
		list, err := ca.Revoke(serials, life.length())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/ca.crl is number %s, with %d certificates, and lasts until %s; copy it to every controller\n",
			*folder, list.Number, len(list.RevokedCertificateEntries), day(list.NextUpdate))
		return err
	}
	return cmd
}

func serialOfFile(ca *pki.Authority, folder, file string) ([]*big.Int, error) {
	if !strings.HasSuffix(file, ".crt") {
		file = pki.In(folder, file).Cert
	}
	cert, err := pki.ReadCertificate(file)
	if err != nil {
		return nil, err
	}
	if err := cert.CheckSignatureFrom(ca.Certificate()); err != nil || cert.IsCA {
		return nil, fmt.Errorf("%s is none that this authority issued to a peer", file)
	}
	return []*big.Int{cert.SerialNumber}, nil
}

// serialsOf answers the serial numbers of all certificates that a peer was issued.
func serialsOf(folder, role, name string) (serials []*big.Int, err error) {
	if err := validRole(role); err != nil {
		return nil, err
	}
	issued, err := pki.ListIssued(folder)
	if err != nil {
		return nil, err
	}
	for _, i := range issued {
		if i.Peer == role+"/"+name {
			serial, err := pki.ReadSerial(i.Serial)
			if err != nil {
				return nil, err
			}
			serials = append(serials, serial)
		}
	}
	if len(serials) == 0 {
		return nil, fmt.Errorf("no certificate was issued to %s/%s here; `xce-elastic cert list` shows those that were", role, name)
	}
	return serials, nil
}

// endsSoon is how long before its end a certificate is shown to end soon.
const endsSoon = 60 * 24 * time.Hour

func newCertList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the certificates that were issued, how long they last and which were revoked", Args: cobra.NoArgs,
		Long: "List the certificates that the authority of a folder issued, how long they last and which were revoked. Those that\n" +
			"controllers make for hosts are in the controller's audit record.",
	}
	folder := folderFlag(cmd.Flags())
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		issued, err := pki.ListIssued(*folder)
		if err != nil {
			return err
		}
		return format.print(cmd, issued, func(t *table) {
			t.row("FILE", "PEER", "SERIAL", "UNTIL", "STATE")
			for _, i := range issued {
				until := "-"
				if !i.Until.IsZero() {
					until = day(i.Until)
				}
				t.row(dash(i.File), dash(i.Peer), i.Serial, until, stateOf(i, time.Now()))
			}
		})
	}
	return cmd
}

// stateOf says what has become of a certificate.
func stateOf(i pki.Issued, now time.Time) string {
	switch {
	case i.Revoked != nil:
		return "revoked " + day(*i.Revoked)
	case now.After(i.Until):
		return "ended"
	case i.Replaced:
		return "replaced, still good"
	case now.After(i.Until.Add(-endsSoon)):
		return "ends soon"
	}
	return "good"
}
