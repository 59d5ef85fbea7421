package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/namespace"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/searchattribute/sadefs"
)

// attributeTypes lists what --search-attribute takes as TYPE.
const attributeTypes = "Bool, Datetime, Double, Int, Keyword, KeywordList, Text"

// attributes maps the name of a search attribute to its type.
type attributes map[string]enums.IndexedValueType

// options is what the command line asked for, checked.
type options struct {
	database   string // empty: in memory
	namespace  string
	retention  time.Duration
	attributes attributes
	ip         netip.Addr
	port       int // 0: pick all ports
	uiPort     int // 0: pick, negative: no UI
	logLevel   slog.Level
	readyFile  string // empty: none
	security   security
}

// parseOptions reads and checks the command line. Usage goes to stderr.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	opts := options{
		attributes: attributes{},
		ip:         netip.MustParseAddr("127.0.0.1"),
		logLevel:   slog.LevelError,
	}
	flags := flag.NewFlagSet("devserver", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are printed once, by the caller
	flags.StringVar(&opts.database, "db", "", "SQLite `FILE` that keeps the state; empty keeps it in memory")
	flags.StringVar(&opts.namespace, "namespace", "xce", "namespace `NAME`, made when absent")
	flags.DurationVar(&opts.retention, "retention", 72*time.Hour, "keep closed workflows for this `DURATION`")
	flags.Func("search-attribute", "search attribute `NAME=TYPE`, made when absent; repeatable.\nTYPE is one of "+attributeTypes, opts.attributes.add)
	flags.TextVar(&opts.ip, "ip", opts.ip, "`ADDRESS` the front end and the UI listen on; there is no authentication but that of --tls-ca")
	flags.IntVar(&opts.port, "port", 7233, "front-end gRPC port `N`; N+1 to N+4 are used too. 0 picks free ports for everything")
	flags.IntVar(&opts.uiPort, "ui-port", 8233, "web UI port `N`; 0 picks a free one, -1 means no UI")
	flags.TextVar(&opts.logLevel, "log-level", opts.logLevel, "log to stderr from this `LEVEL` on: debug, info, warn, error")
	flags.StringVar(&opts.security.ca, "tls-ca", "", "have callers show a certificate of this authority (PEM `FILE`)")
	flags.StringVar(&opts.security.cert, "tls-cert", "", "certificate `FILE` (PEM) of the front end, for the address of --ip; it calls itself with it too")
	flags.StringVar(&opts.security.key, "tls-key", "", "key `FILE` (PEM) of --tls-cert")
	flags.StringVar(&opts.readyFile, "ready-file", "", "`FILE` to write, as one JSON object, once ready")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			printUsage(flags, stderr)
			return options{}, err
		}
		return options{}, fmt.Errorf("%w; see devserver --help", err)
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: everything is given by flags, see devserver --help", flags.Arg(0))
	}
	if opts.port == 0 && !isSet(flags, "ui-port") {
		opts.uiPort = 0 // free ports for everything
	}
	return opts, opts.check()
}

func printUsage(flags *flag.FlagSet, stderr io.Writer) {
	fmt.Fprintln(stderr, "devserver runs a Temporal server and its web UI on this machine, for development and tests.")
	fmt.Fprintln(stderr)
	flags.SetOutput(stderr)
	flags.PrintDefaults()
}

func isSet(flags *flag.FlagSet, name string) bool {
	set := false
	flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// add takes one NAME=TYPE; it is the callback of --search-attribute.
func (a attributes) add(value string) error {
	name, typeName, ok := strings.Cut(value, "=")
	if !ok || name == "" {
		return errors.New("want NAME=TYPE, as in XceKind=Keyword")
	}
	if sadefs.IsReserved(name) {
		return fmt.Errorf("%s is a name Temporal keeps for itself: choose another", name)
	}
	kind, err := enums.IndexedValueTypeFromString(typeName)
	if err != nil || kind == enums.INDEXED_VALUE_TYPE_UNSPECIFIED {
		return fmt.Errorf("unknown type %q: use one of %s", typeName, attributeTypes)
	}
	if earlier, ok := a[name]; ok && earlier != kind {
		return fmt.Errorf("%s is given twice, as %s and as %s: drop one", name, earlier, kind)
	}
	a[name] = kind
	return nil
}

func (o options) check() error {
	switch {
	case o.namespace == "":
		return errors.New("--namespace must not be empty")
	case o.namespace == primitives.SystemLocalNamespace:
		return fmt.Errorf("--namespace %s is Temporal's own: choose another", o.namespace)
	case o.retention < namespace.MinRetentionLocal:
		return fmt.Errorf("--retention %s is too short: Temporal keeps closed workflows for at least %s", o.retention, namespace.MinRetentionLocal)
	case o.port < 0 || o.port > maxPort-servicePorts+1:
		return fmt.Errorf("--port %d: want 0, or 1 to %d (it and the next %d are used)", o.port, maxPort-servicePorts+1, servicePorts-1)
	case o.uiPort > maxPort:
		return fmt.Errorf("--ui-port %d: want -1, 0, or 1 to %d", o.uiPort, maxPort)
	case o.logLevel > slog.LevelError:
		return fmt.Errorf("--log-level %s: want debug, info, warn or error", o.logLevel)
	}
	return o.security.check()
}
