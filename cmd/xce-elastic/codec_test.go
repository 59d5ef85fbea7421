package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/cmd/xce-elastic/config"
)

func TestKeysAreMadePutToUseAndDropped(t *testing.T) {
	t.Chdir(t.TempDir())
	first := strings.Fields(say(t, "codec keygen"))[1]
	out := strings.Fields(say(t, "codec keygen"))
	second := out[4]
	if out[1] != first || out[2] != "encrypts," {
		t.Errorf("after another key, %q", out)
	}
	refuses(t, strings.Fields("codec drop "+second), `say --yes if none is left`)
	refuses(t, strings.Fields("codec drop --yes "+first), `have another do so first`)
	refuses(t, strings.Fields("codec use none"), `codec.keys has no key "none"; it has `+first+", "+second)
	if got := say(t, "codec use "+second); got != "codec.keys: "+second+" encrypts, and "+first+" only decrypt\n" {
		t.Errorf("put to use: %s", got)
	}
	if got := say(t, "codec drop --yes "+first); got != "codec.keys: "+second+" encrypts\n" {
		t.Errorf("dropped: %s", got)
	}
}

func TestTheEndpointIsServedOnlyToWhomItIsSaid(t *testing.T) {
	t.Chdir(t.TempDir())
	say(t, "codec keygen")
	t.Setenv("XCE_CONFIG", fileOf(t, "c.yaml", "cluster: {name: east}\n"))
	const ui = " --origin http://127.0.0.1:8233"
	for line, want := range map[string]string{
		"codec serve":          `required flag`,
		"codec serve --anyone": `required flag.*origin`,
		"codec serve" + ui:     `token-file anyone`,
		"codec serve --anyone --token-file x" + ui:             `token-file anyone`,
		"codec serve --anyone --listen :8234" + ui:             `--listen :8234 is reached from other machines`,
		"codec serve --token-file x --listen 0.0.0.0:1" + ui:   `is reached from other machines: take a --token-file and a --cert`,
		"codec serve --anyone --listen nowhere" + ui:           `--listen: `,
		"codec serve --anyone --origin *":                      `--origin "\*": write scheme, host and port alone`,
		"codec serve --anyone --origin http://127.0.0.1:8233/": `write scheme, host and port alone`,
		"codec serve --anyone" + ui:                            `nothing is encrypted, as temporal.codec.keys names no file`,
	} {
		refuses(t, strings.Fields(line), want)
	}
}

func TestTheEndpointAnswersUntilItIsStopped(t *testing.T) {
	t.Chdir(t.TempDir())
	say(t, "codec keygen")
	if err := os.WriteFile("token", []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	address, served := make(chan string, 1), make(chan error, 1)
	c := &config.Config{}
	c.Temporal.Codec.Keys, _ = filepath.Abs("codec.keys")
	e := endpoint{listen: "127.0.0.1:0", origins: []string{"http://127.0.0.1:8233"}, tokenFile: "token"}
	go func() { served <- e.serve(ctx, c, func(at string) { address <- at }) }()
	select {
	case at := <-address:
		resp, err := http.Post("http://"+at+"/decode", "application/json", strings.NewReader("{}"))
		if err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("without the token: %v, %v", resp, err)
		}
	case err := <-served:
		t.Fatal(err)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
