package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/controller/pki"
	"xce.internal/elastic/starter/codec"
)

// defaultNamespace is the Temporal namespace where none is configured.
const defaultNamespace = "xce"

// temporalOptions answers how Temporal is reached, and how payloads are encrypted.
// Every Temporal client of ours is made with it.
func temporalOptions(c *config.Config, log *slog.Logger) (client.Options, error) {
	options, err := temporalPlace(c)
	if err != nil {
		return options, err
	}
	options.Logger = sdklog.NewStructuredLogger(log)
	if err := secure(&options, c.Temporal, log); err != nil {
		return options, err
	}
	payloads, err := payloadCodec(c.Temporal.Codec.Keys, options.Namespace, log)
	if err != nil {
		return options, err
	}
	options.DataConverter, options.FailureConverter = payloads.Converters()
	return options, nil
}

// temporalPlace answers what TEMPORAL_ variables and profiles say of Temporal, and
// over them which server and namespace the configuration names.
func temporalPlace(c *config.Config) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("read Temporal's client settings: %w", err)
	}
	if c.Temporal.Address != "" {
		options.HostPort = c.Temporal.Address
	}
	if options.HostPort == "" {
		options.HostPort = client.DefaultHostPort
	}
	switch {
	case c.Temporal.Namespace != "":
		options.Namespace = c.Temporal.Namespace
	case options.Namespace == "":
		options.Namespace = defaultNamespace
	}
	return options, nil
}

// secure takes over what the configuration says of TLS and of the API key.
func secure(options *client.Options, t config.Temporal, log *slog.Logger) (err error) {
	if t.TLS != (config.TemporalTLS{}) {
		options.ConnectionOptions.TLSDisabled = false
		if options.ConnectionOptions.TLS, err = temporalTLS(t.TLS, log); err != nil {
			return fmt.Errorf("temporal.tls: %w", err)
		}
	}
	if t.APIKeyFile == "" {
		return nil
	}
	if options.ConnectionOptions.TLSDisabled {
		return errors.New("temporal.api_key_file: the key would go over the wire for all to read, as TEMPORAL_TLS turns TLS off; turn it on")
	}
	key := func(context.Context) (string, error) { return apiKey(t.APIKeyFile) }
	if _, err := key(context.Background()); err != nil {
		return err
	}
	options.Credentials = client.NewAPIKeyDynamicCredentials(key)
	return nil
}

// longestSecret is more than any key or token has.
const longestSecret = 1 << 20

// apiKey reads the key at every call, so that another is taken up without a restart.
func apiKey(path string) (string, error) {
	text, err := private.ReadOwn(path, longestSecret)
	if err != nil {
		return "", fmt.Errorf("temporal.api_key_file: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("temporal.api_key_file: %s does not hold one key and nothing else", path)
	}
	return key, nil
}

// temporalTLS answers the TLS configuration of a client of Temporal. Without an
// authority of its own, the machine's are trusted.
func temporalTLS(t config.TemporalTLS, log *slog.Logger) (*tls.Config, error) {
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("there is a certificate without a key, or a key without a certificate; set both, or neither")
	}
	files := pki.Files{CA: t.CA, Cert: t.Cert, Key: t.Key}
	own := &tls.Config{MinVersion: tls.VersionTLS13}
	var err error
	switch {
	case t.CA != "" && t.Cert != "":
		own, err = files.ClientLogging(log)
	case t.Cert != "":
		own.GetClientCertificate, err = files.Presenting(log)
	case t.CA != "":
		own.RootCAs, err = files.Pool()
	}
	if err != nil {
		return nil, err
	}
	own.ServerName = t.ServerName
	return own, nil
}

// payloadCodec answers what payloads of a namespace are encrypted with. Without
// keys it encrypts nothing, and says so of payloads that are encrypted.
func payloadCodec(keys, namespace string, log *slog.Logger) (*codec.Codec, error) {
	if keys == "" {
		return codec.None(namespace), nil
	}
	c, err := codec.Open(keys, namespace, log)
	if err != nil {
		return nil, fmt.Errorf("temporal.codec.keys: %w", err)
	}
	return c, nil
}
