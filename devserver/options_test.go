package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
)

func TestOptionDefaults(t *testing.T) {
	opts, err := parseOptions(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if opts.namespace != "xce" || opts.port != 7233 || opts.uiPort != 8233 || opts.ip.String() != "127.0.0.1" || opts.database != "" {
		t.Errorf("got %+v", opts)
	}
}

func TestPortZeroPicksTheUIPortToo(t *testing.T) {
	tests := map[string]int{
		"--port 0":                0,
		"--port 0 --ui-port 9000": 9000,
		"--port 0 --ui-port -1":   -1,
		"--port 7300":             8233,
	}
	for line, want := range tests {
		opts, err := parseOptions(strings.Fields(line), io.Discard)
		if err != nil || opts.uiPort != want {
			t.Errorf("%s: UI port %d, %v; want %d", line, opts.uiPort, err, want)
		}
	}
}

func TestSearchAttributesRepeat(t *testing.T) {
	opts, err := parseOptions(strings.Fields("--search-attribute XceKind=Keyword --search-attribute XceUnits=Int --search-attribute XceKind=Keyword"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(opts.attributes) != 2 || opts.attributes["XceUnits"] != enums.INDEXED_VALUE_TYPE_INT {
		t.Errorf("got %v", opts.attributes)
	}
}

func TestRefusedOptions(t *testing.T) {
	tests := map[string][]string{
		"now":                               {"now", "--help"},
		"--no-such-flag":                    {"no-such-flag", "--help"},
		"--port 65532":                      {"65532", "65531"},
		"--port -1":                         {"-1"},
		"--ui-port 70000":                   {"70000", "65535"},
		"--ip localhost":                    {"localhost"},
		"--retention 5m":                    {"5m0s", "1h"},
		"--log-level loud":                  {"loud"},
		"--log-level error+4":               {"error"},
		"--namespace temporal-system":       {"temporal-system"},
		"--namespace=":                      {"--namespace"},
		"--search-attribute XceKind":        {"NAME=TYPE"},
		"--search-attribute XceKind=String": {"String", "Keyword"},
		"--search-attribute WorkflowId=Int": {"WorkflowId"},
		"--search-attribute X=Unspecified":  {"Unspecified", "Keyword"},
		"--search-attribute X=Int --search-attribute X=Bool": {"twice"},
	}
	for line, want := range tests {
		_, err := parseOptions(strings.Fields(line), io.Discard)
		if err == nil {
			t.Errorf("%s is accepted", line)
			continue
		}
		wantAll(t, err.Error(), want...)
	}
}

func TestHelpGoesToStderr(t *testing.T) {
	var usage strings.Builder
	if _, err := parseOptions([]string{"--help"}, &usage); !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v", err)
	}
	wantAll(t, usage.String(), "-search-attribute", "-ready-file", "-ui-port")
}

func TestCertificatesAreGivenTogether(t *testing.T) {
	for args, works := range map[string]bool{
		"": true, "--tls-ca a --tls-cert b --tls-key c": true, "--tls-ca a": false, "--tls-cert b --tls-key c": false, "--tls-ca a --tls-cert b": false,
	} {
		opts, err := parseOptions(strings.Fields(args), io.Discard)
		if (err == nil) != works || err != nil && !strings.Contains(err.Error(), "go together") {
			t.Errorf("%q: %v", args, err)
		}
		if works && opts.security.on() != (args != "") {
			t.Errorf("%q gives %+v", args, opts.security)
		}
	}
}
