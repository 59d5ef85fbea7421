package main

import (
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
	cmd.AddCommand(newCertIssue())
	return cmd
}

func newCertIssue() *cobra.Command {
	roles := []string{controllerRole, string(api.Admin), string(api.Provisioner), string(api.HostRole), string(api.Submitter), string(api.Viewer)}
	cmd := &cobra.Command{
		Use: "issue", Short: "Issue a certificate for a peer", Args: cobra.NoArgs,
		Long: "Issue a certificate for a peer, signed by the authority in the folder, which is made where there is none.\n" +
			"Keep the authority's key (ca.key) off the machines that only need certificates.",
		Example: "  xce-elastic cert issue --role controller --name east --address controller.example.com\n" +
			"  xce-elastic cert issue --role provisioner --name p1",
	}
	flags := cmd.Flags()
	folder := flags.String("folder", "pki", "folder of the authority and of what it issues")
	role := flags.String("role", "", "one of "+strings.Join(roles, ", "))
	name := flags.String("name", "", "name of the peer; for a host, that of the host")
	file := flags.String("file", "", "name of the files, without ending (default the role, for a host its name)")
	addresses := flags.StringArray("address", nil, "DNS name or IP that the controller is reached at; repeatable")
	replace := flags.Bool("replace", false, "replace a certificate that is there already")
	_ = cmd.MarkFlagRequired("role")
	_ = cmd.MarkFlagRequired("name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !slices.Contains(roles, *role) {
			return fmt.Errorf("--role %q: use one of %s", *role, strings.Join(roles, ", "))
		}
		if !cluster.ValidName(*name) {
			return fmt.Errorf("--name %q: use letters, digits, '.', '_' or '-'", *name)
		}
		if (*role == controllerRole) != (len(*addresses) > 0) {
			return fmt.Errorf("--address is for the controller's certificate, which needs at least one")
		}
		if *file == "" {
			if *file = *role; *role == string(api.HostRole) {
				*file = *name
			}
		}
		if !cluster.ValidName(*file) {
			return fmt.Errorf("--file %q: use letters, digits, '.', '_' or '-'", *file)
		}
		if _, err := os.Stat(pki.In(*folder, *file).Cert); err == nil && !*replace {
			return fmt.Errorf("%s is there already; name another with --file, or replace it with --replace", pki.In(*folder, *file).Cert)
		}
		ca, err := pki.OpenAuthority(*folder)
		if err != nil {
			return err
		}
		if err := ca.Issue(*file, pki.Peer{Role: *role, Name: *name}, *addresses...); err != nil {
			return err
		}
		files := pki.In(*folder, *file)
		err = say(cmd.OutOrStdout(), "%s and %s are for %s/%s\n", files.Cert, files.Key, *role, *name)
		return err
	}
	return cmd
}
