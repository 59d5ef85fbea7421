package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/cmd/xce-elastic/config"
	"xce.internal/elastic/starter/codec"
)

func newCodec() *cobra.Command {
	cmd := &cobra.Command{Use: "codec", Short: "Work on the encryption of what Temporal keeps", Args: known, RunE: help}
	cmd.AddCommand(newKeygen(), newCodecUse(), newCodecDrop(), newCodecServe())
	return cmd
}

func fileFlag(flags *pflag.FlagSet) *string {
	return flags.String("file", "codec.keys", "file of the keys")
}

// sayKeys says which keys a file has; a key itself is never shown.
func sayKeys(cmd *cobra.Command, file string, ids []string) error {
	text := fmt.Sprintf("%s: %s encrypts", file, ids[0])
	if len(ids) > 1 {
		text += ", and " + strings.Join(ids[1:], ", ") + " only decrypt"
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func newKeygen() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keygen", Short: "Make a key, and add it to a file of keys", Args: cobra.NoArgs,
		Long: "Make a key, and add it to a file of keys, which is made where there is none. It only decrypts, unless it is\n" +
			"the first: copy the file to wherever it is used, and have the key encrypt with `codec use` then.",
		Example: "  xce-elastic codec keygen --file codec.keys",
	}
	file := fileFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ids, err := codec.AddKey(*file)
		if err != nil {
			return err
		}
		return sayKeys(cmd, *file, ids)
	}
	return cmd
}

func newCodecUse() *cobra.Command {
	cmd := &cobra.Command{
		Use: "use KEY", Short: "Have another key of a file encrypt", Args: exactly(1, "xce-elastic codec use 3f0c55a1b2d4"),
		Long: "Have another key of a file encrypt from now on. Do so once every process that uses the keys has it: what\n" +
			"one encrypts, the others must decrypt.",
	}
	file := fileFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := codec.UseKey(*file, args[0])
		if err != nil {
			return err
		}
		return sayKeys(cmd, *file, ids)
	}
	return cmd
}

func newCodecDrop() *cobra.Command {
	cmd := &cobra.Command{
		Use: "drop KEY", Short: "Take a key out of a file", Args: exactly(1, "xce-elastic codec drop 3f0c55a1b2d4 --yes"),
		Long: "Take a key out of a file. What it encrypted can be read no more: do so when every workflow that began\n" +
			"with it, or was written to with it, has closed and is past the retention of its namespace.",
	}
	file := fileFlag(cmd.Flags())
	yes := cmd.Flags().Bool("yes", false, "nothing that is still needed was encrypted with it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*yes {
			return errors.New("workflows that it encrypted stand still without it; say --yes if none is left")
		}
		ids, err := codec.DropKey(*file, args[0])
		if err != nil {
			return err
		}
		return sayKeys(cmd, *file, ids)
	}
	return cmd
}

// endpoint is how the codec's endpoint is served.
type endpoint struct {
	listen, tokenFile, cert, key string
	origins                      []string
	anyone                       bool
}

func newCodecServe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Decrypt for the Temporal UI", Args: cobra.NoArgs,
		Long: "Serve the endpoint with which the Temporal UI decrypts what it shows, with the keys of temporal.codec.keys.\n" +
			"Name it in the UI as its codec server. Whoever may use it can read all that the keys encrypted, so say who:\n" +
			"bearers of a token, or, on this machine alone, anyone. Pages of other origins than those named are refused.",
		Example: "  xce-elastic codec serve --origin http://127.0.0.1:8233 --anyone\n" +
			"  xce-elastic codec serve --listen :8234 --cert ui.crt --key ui.key --origin https://temporal.example.com --token-file codec.token",
	}
	var e endpoint
	flags := cmd.Flags()
	flags.StringVar(&e.listen, "listen", "127.0.0.1:8234", "address and port to serve at")
	flags.StringArrayVar(&e.origins, "origin", nil, "origin of the Temporal UI, as in http://127.0.0.1:8233; repeatable")
	flags.StringVar(&e.tokenFile, "token-file", "", "file with the token that callers must bear, which only its owner can read")
	flags.BoolVar(&e.anyone, "anyone", false, "let in whoever reaches the address, which must be of this machine alone")
	flags.StringVar(&e.cert, "cert", "", "certificate (PEM) for HTTPS")
	flags.StringVar(&e.key, "key", "", "key (PEM) of --cert")
	_ = cmd.MarkFlagRequired("origin")
	cmd.MarkFlagsRequiredTogether("cert", "key")
	cmd.MarkFlagsMutuallyExclusive("token-file", "anyone")
	cmd.MarkFlagsOneRequired("token-file", "anyone")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := load(cmd)
		if err != nil {
			return err
		}
		return e.serve(cmd.Context(), c, func(address string) {
			logger(c).Info("payloads are decrypted", "address", address, "origins", e.origins)
		})
	}
	return cmd
}

// check refuses to serve what others could read on the way, or could use unasked.
func (e endpoint) check() error {
	host, _, err := net.SplitHostPort(e.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; write an address and a port, as in 127.0.0.1:8234", err)
	}
	ip := net.ParseIP(host)
	if here := ip != nil && ip.IsLoopback() || host == "localhost"; !here && (e.anyone || e.cert == "") {
		return fmt.Errorf("--listen %s is reached from other machines: take a --token-file and a --cert, or listen at 127.0.0.1", e.listen)
	}
	for _, origin := range e.origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return fmt.Errorf("--origin %q: write scheme, host and port alone, as in http://127.0.0.1:8233", origin)
		}
	}
	return nil
}

func (e endpoint) serve(ctx context.Context, c *config.Config, ready func(address string)) error {
	if err := e.check(); err != nil {
		return err
	}
	log := logger(c)
	if c.Temporal.Codec.Keys == "" {
		return errors.New("nothing is encrypted, as temporal.codec.keys names no file of keys")
	}
	place, err := temporalPlace(c)
	if err != nil {
		return err
	}
	payloads, err := payloadCodec(c.Temporal.Codec.Keys, place.Namespace, log)
	if err != nil {
		return err
	}
	access := codec.Access{Origins: e.origins}
	if e.tokenFile != "" {
		text, err := private.ReadOwn(e.tokenFile, longestSecret)
		if access.Token = strings.TrimSpace(string(text)); err == nil && access.Token == "" {
			err = fmt.Errorf("%s is empty", e.tokenFile)
		}
		if err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
	}
	return e.listenAndServe(ctx, codec.Handler(payloads, access), ready)
}

func (e endpoint) listenAndServe(ctx context.Context, handler http.Handler, ready func(address string)) error {
	listener, err := net.Listen("tcp", e.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w; free the port or name another", err)
	}
	server := &http.Server{
		Handler: handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	ready(listener.Addr().String())
	if e.cert != "" {
		err = server.ServeTLS(listener, e.cert, e.key)
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
