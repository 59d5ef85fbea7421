package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// controllerRole is the role of the controller's own certificate, which may
// call nothing.
const controllerRole = "controller"

func newCert() *cobra.Command {
	cmd := &cobra.Command{Use: "cert", Short: "Work on certificates", Args: known, RunE: help}
	cmd.AddCommand(newCertIssue(), newCertRenew(), newCertRevoke(), newCertList())
	return cmd
}

// roles are those that a certificate can have.
var roles = []string{controllerRole, string(api.Admin), string(api.Provisioner), string(api.HostRole), string(api.Submitter), string(api.Viewer)}

func validRole(role string) error {
	if !slices.Contains(roles, role) {
		return fmt.Errorf("--role %q: use one of %s", role, strings.Join(roles, ", "))
	}
	return nil
}

func newCertIssue() *cobra.Command {
	cmd := &cobra.Command{
		Use: "issue", Short: "Issue a certificate for a peer", Args: cobra.NoArgs,
		Long: "Issue a certificate for a peer, signed by the authority in the folder, which is made where there is none.\n" +
			"Keep the authority's key (ca.key) off the machines that only need certificates.",
		Example: "  xce-elastic cert issue --role controller --name east --address controller.example.com\n" +
			"  xce-elastic cert issue --role provisioner --name p1",
	}
	flags := cmd.Flags()
	folder := folderFlag(flags)
	role := flags.String("role", "", "one of "+strings.Join(roles, ", "))
	name := flags.String("name", "", "name of the peer; for a host, that of the host")
	file := flags.String("file", "", "name of the files, without ending (default the role, for a host its name)")
	addresses := flags.StringArray("address", nil, "DNS name or IP that the controller is reached at; repeatable")
	replace := flags.Bool("replace", false, "replace a certificate that is there already")
	life := lifeFlag(flags, pki.LeafLife, "how many days it lasts, at most until its authority ends")
	_ = cmd.MarkFlagRequired("role")
	_ = cmd.MarkFlagRequired("name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := validRole(*role); err != nil {
			return err
		}
		if !cluster.ValidName(*name) {
			return fmt.Errorf("--name %q: use letters, digits, '.', '_' or '-'", *name)
		}
		if (*role == controllerRole) != (len(*addresses) > 0) {
			return errors.New("--address is for the controller's certificate, which needs at least one")
		}
		if *file == "" {
			if *file = *role; *role == string(api.HostRole) {
				*file = *name
			}
		}
		if !cluster.ValidName(*file) || *file == "ca" {
			return fmt.Errorf("--file %q: use letters, digits, '.', '_' or '-', and another name than the authority's", *file)
		}
		if _, err := os.Stat(pki.In(*folder, *file).Cert); err == nil && !*replace {
			return fmt.Errorf("%s is there already; name another with --file, or replace it with --replace", pki.In(*folder, *file).Cert)
		}
		ca, err := pki.OpenAuthority(*folder)
		if err != nil {
			return err
		}
		cert, err := ca.IssueFor(life.length(), *file, pki.Peer{Role: *role, Name: *name}, *addresses...)
		if err != nil {
			return err
		}
		return sayIssued(cmd.OutOrStdout(), *folder, *file, cert.NotAfter, *role+"/"+*name)
	}
	return cmd
}
