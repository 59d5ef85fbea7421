package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/pki"
)

// say runs a command line that must succeed, and answers what it prints.
func say(t *testing.T, line string) string {
	t.Helper()
	out, _, err := typed(t, "", strings.Fields(line)...)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

func issuedHere(t *testing.T) (issued []pki.Issued) {
	t.Helper()
	if err := json.Unmarshal([]byte(say(t, "cert list --json")), &issued); err != nil {
		t.Fatal(err)
	}
	return issued
}

func TestCertificatesFromTheirIssueToTheirRevocation(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := say(t, "ca init"); !strings.Contains(got, "keep it off the machines") || !strings.Contains(got, "copy it to every controller") {
		t.Errorf("ca init says\n%s", got)
	}
	key, _ := os.ReadFile("pki/ca.key")
	refuses(t, []string{"ca", "init"}, `there is an authority in pki already`)
	if after, _ := os.ReadFile("pki/ca.key"); string(after) != string(key) {
		t.Error("the authority was overwritten")
	}
	say(t, "cert issue --role provisioner --name p1 --days 30")
	say(t, "cert issue --role controller --name east --address 127.0.0.1")
	refuses(t, strings.Fields("cert issue --role provisioner --name p2"), `is there already; name another with --file, or replace it with --replace`)
	if got := say(t, "cert renew --within 60"); !strings.Contains(got, "provisioner.key are for provisioner/p1 until 20") || strings.Contains(got, "controller") {
		t.Errorf("renewed are\n%s", got)
	}
	if got := say(t, "cert renew --within 60"); got != "no certificate in pki ends within 60 days\n" {
		t.Errorf("renewed are\n%s", got)
	}
	say(t, "cert renew controller")
	if got := say(t, "cert revoke --role provisioner --name p1"); !strings.Contains(got, "pki/ca.crl is number 2, with 2 certificates, and lasts until 20") {
		t.Errorf("revoked are\n%s", got)
	}
	say(t, "cert revoke --file controller")
	say(t, "cert revoke --file pki/controller.crt") // once more
	say(t, "cert revoke --serial 12ab")
	if got := say(t, "cert revoke"); !strings.Contains(got, "number 6, with 4 certificates") {
		t.Errorf("the list is\n%s", got)
	}
	refuses(t, strings.Fields("cert renew controller"), `was revoked; if its peer is to have another, use .xce-elastic cert issue --replace`)
	var states []string
	for _, i := range issuedHere(t) {
		state := i.Peer
		if i.Revoked != nil {
			state += " revoked"
		}
		if i.Replaced {
			state += " replaced"
		}
		states = append(states, state)
	}
	want := "provisioner/p1 revoked replaced, controller/east replaced, provisioner/p1 revoked, controller/east revoked,  revoked"
	if got := strings.Join(states, ", "); got != want {
		t.Errorf("listed are %s, want %s", got, want)
	}
}

func TestCommandsOnCertificatesAreRefusedWithARemedy(t *testing.T) {
	t.Chdir(t.TempDir())
	say(t, "ca init --days 400")
	say(t, "cert issue --role viewer --name v")
	for line, want := range map[string]string{
		"cert renew":                                    `name the files of the certificates, without ending`,
		"cert renew viewer --within 3":                  `or say --within 60`,
		"cert renew ../viewer":                          `there is no certificate "../viewer"`,
		"cert renew ca":                                 `there is no certificate "ca"`,
		"cert revoke --file ca":                         `none that this authority issued to a peer`,
		"cert revoke --serial xyz":                      `"xyz" is no serial number; write it as .xce-elastic cert list. shows it`,
		"cert revoke --role viewer":                     `\[role name\]`,
		"cert revoke --role v --name v":                 `--role "v": use one of controller`,
		"cert revoke --folder elsewhere":                `no such file`,
		"cert issue --role admin --name a --days 0":     `--days 0: write a whole number of days, from 1 to 36500`,
		"cert issue --role admin --name a --days 1.5":   `--days 1.5: write a whole number of days`,
		"cert issue --role admin --name a --file ca":    `another name than the authority's`,
		"cert revoke --role viewer --name elsewhere":    `no certificate was issued to viewer/elsewhere here`,
		"cert issue --role viewer --name v --address a": `--address is for the controller's certificate`,
	} {
		refuses(t, strings.Fields(line), want)
	}
	if got := issuedHere(t); len(got) != 1 || got[0].Revoked != nil {
		t.Errorf("listed are %+v", got)
	}
}

func TestAControllerWithoutASoundListDoesNotStart(t *testing.T) {
	t.Chdir(t.TempDir())
	say(t, "ca init")
	files := config.ServerTLS{CA: "pki/ca.crt", CRL: filepath.Join("pki", "ca.crl")}
	log := slog.New(slog.DiscardHandler)
	if list, err := revocationsOf(files, log); err != nil || list == nil {
		t.Errorf("a sound list gives %v, %v", list, err)
	}
	files.CRL = "elsewhere.crl"
	if _, err := revocationsOf(files, log); err == nil || !strings.HasPrefix(err.Error(), "controller.tls.crl: ") {
		t.Errorf("a list that is not there gives %v", err)
	}
	files.CRL = ""
	if list, err := revocationsOf(files, log); err != nil || list != nil {
		t.Errorf("no list gives %v, %v", list, err)
	}
}
