package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// source is where a command takes a session from: the controller, or a file.
type source struct{ file string }

// sourceFlag adds --snapshot to a command.
func sourceFlag(cmd *cobra.Command) *source {
	var s source
	cmd.Flags().StringVar(&s.file, "snapshot", "", "run the session on the state in this file instead (- is standard input); neither controller nor configuration is needed")
	return &s
}

// session answers the last session of the controller, or one on the file.
func (s *source) session(cmd *cobra.Command) (api.Session, error) {
	if s.file == "" && !cmd.Flags().Changed("snapshot") {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return api.Session{}, err
		}
		return c.Session(cmd.Context())
	}
	state, err := readSnapshot(cmd, s.file)
	if err != nil {
		return api.Session{}, err
	}
	return api.NewSession(state.Cluster, state.State, scheduling.Run(state.State)), nil
}

func readSnapshot(cmd *cobra.Command, name string) (snapshot.Snapshot, error) {
	if name == "-" {
		return snapshot.Read("standard input", cmd.InOrStdin())
	}
	file, err := os.Open(name)
	if err != nil {
		return snapshot.Snapshot{}, fmt.Errorf("--snapshot: %w; name a file that `xce-elastic snapshot` saved", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return snapshot.Snapshot{}, fmt.Errorf("--snapshot: %s is a folder; name a file", name)
	}
	return snapshot.Read(name, file)
}

// see answers the command that shows who waits for what in the same session.
func (s *source) see() string {
	if s.file == "" {
		return "xce-elastic session"
	}
	return "xce-elastic session --snapshot " + s.file
}

// ofSession makes a command print a part of a session: a value, or as a table.
func ofSession(cmd *cobra.Command, part func(api.Session, *source) (any, func(*table))) *cobra.Command {
	from, format := sourceFlag(cmd), outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := from.session(cmd)
		if err != nil {
			return err
		}
		value, show := part(s, from)
		return format.print(cmd, value, show)
	}
	return cmd
}

func newDemand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "demand", Short: "Show what jobs want that is not there", Args: cobra.NoArgs,
		Long: "Show what the last session wanted for waiting jobs and could not place on what is there: tokens to borrow and\nhosts to make, less what was asked for since.",
	}
	return ofSession(cmd, func(s api.Session, from *source) (any, func(*table)) {
		return s.Demand, func(t *table) { demandTable(t, s, from.see()) }
	})
}

func newIdle() *cobra.Command {
	cmd := &cobra.Command{
		Use: "idle", Short: "Show what lies idle, and since when", Args: cobra.NoArgs,
		Long: "Show the tokens and hosts that the last session found used by no job, and kept or counted on for no waiting one, and since when.\n" +
			"Free tokens whose jobs wait for a busy host are among them.",
	}
	return ofSession(cmd, func(s api.Session, from *source) (any, func(*table)) {
		return s.Idle, func(t *table) { idleTable(t, s, everything) }
	})
}

func newSession() *cobra.Command {
	cmd := &cobra.Command{
		Use: "session", Short: "Show what a session decides and why", Args: cobra.NoArgs,
		Long: "Show what the last session decided and found: which jobs it started, what they are promised, what they want,\n" +
			"what lies idle, and who waits for what. With --snapshot, one session is run on a saved state; nothing is changed.",
		Example: "  xce-elastic snapshot --hash --out state.json\n  xce-elastic session --snapshot state.json",
	}
	return ofSession(cmd, func(s api.Session, from *source) (any, func(*table)) {
		return s, func(t *table) { sessionTable(t, s) }
	})
}

// Tables of one session show so many rows each; demand and idle show all.
const (
	someRows   = 20
	everything = int(^uint(0) >> 1)
)

// rows calls show for the first rows of a list, and says how many there are beside.
func rows[T any](t *table, list []T, most int, show func(T)) {
	for i, item := range list {
		if i == most {
			t.row(fmt.Sprintf("and %d more; -o json lists them", len(list)-i))
			return
		}
		show(item)
	}
}

func sessionTable(t *table, s api.Session) {
	if s.At == 0 {
		t.row(fmt.Sprintf("no session has run in %s since the controller started", s.Cluster))
		return
	}
	order := s.Policy.Order
	if order == "" {
		order = scheduling.FCFS
	}
	t.row(fmt.Sprintf("session of %s at %s under %s: %d start, %d wait", s.Cluster, stamp(s.At), order, len(s.Starts), waitingIn(s)))
	if len(s.Starts) > 0 {
		t.row()
		t.row("STARTS", "ON", "WITH ALTERNATIVE")
		rows(t, s.Starts, someRows, func(st scheduling.Start) {
			t.row(element(st.Job, st.Element), shortList(st.Hosts), orDash(st.Alternative))
		})
	}
	if len(s.Reservations) > 0 {
		t.row()
		t.row("RESERVED FOR", "AT THE LATEST", "ON")
		rows(t, s.Reservations, someRows, func(r scheduling.Reservation) { t.row(element(r.Job, r.Element), stamp(r.At), shortList(r.Hosts)) })
	}
	t.row()
	demandTable(t, s, "")
	t.row()
	idleTable(t, s, someRows)
	halfTable(t, s)
	t.row()
	waitingTable(t, s)
}

// halfTable shows what is there already for jobs that wait for the rest of what
// they need.
func halfTable(t *table, s api.Session) {
	if len(s.Halves) == 0 {
		return
	}
	t.row()
	t.sentence(wrapped, "KEPT", "OF", "FOR", "AWAITING")
	rows(t, s.Halves, someRows, func(h cluster.Half) {
		of := h.Resource
		if h.Host != "" {
			of = "host " + h.Host
		}
		t.sentence(wrapped, h.Units, of, keptFor(h), strings.Join(h.Awaits, "; "))
	})
}

// keptFor names the first jobs that something is kept for.
func keptFor(h cluster.Half) string {
	const named = 5
	var ids []string
	for _, id := range h.Jobs[:min(len(h.Jobs), named)] {
		ids = append(ids, fmt.Sprint(id))
	}
	switch list := strings.Join(ids, ", "); {
	case h.Count == 1:
		return "job " + list
	case h.Count > int64(len(ids)):
		return fmt.Sprintf("%d jobs, first %s", h.Count, list)
	default:
		return "jobs " + list
	}
}

func waitingIn(s api.Session) (n int64) {
	for _, u := range s.Unplaced {
		n += u.Count
	}
	return n
}

// demandTable shows demand; where there is none and jobs wait, it says where to
// see why.
func demandTable(t *table, s api.Session, see string) {
	waiting := waitingIn(s)
	switch {
	case len(s.Demand) > 0:
		t.sentence(wrapped, "WANTED", "OF", "FROM", "TOTAL PRICE/H", "FOR JOBS", "WHY")
		for _, d := range s.Demand {
			t.sentence(wrapped, d.Units, d.What(), d.Provider, d.Price, len(d.Jobs), d.Reason)
		}
	case waiting == 0:
		t.row("nothing is wanted")
	case see == "":
		t.row("nothing can be asked for now")
	default:
		t.row(fmt.Sprintf("nothing can be asked for now; %s, see `%s`", jobsWait(waiting), see))
	}
}

// jobsWait says how many jobs wait.
func jobsWait(n int64) string {
	if n == 1 {
		return "1 job waits"
	}
	return fmt.Sprintf("%d jobs wait", n)
}

func idleTable(t *table, s api.Session, most int) {
	if len(s.Idle) == 0 {
		t.row("nothing lies idle")
		return
	}
	t.row("IDLE", "OF", "TEMPLATE", "SINCE", "FOR")
	rows(t, s.Idle, most, func(i cluster.IdleSupply) {
		of := i.Resource
		if i.Host != "" {
			of = "host " + i.Host
		}
		t.row(i.Units, of, dash(i.Template), stamp(i.Since), max(s.At.Sub(i.Since), 0)/cluster.Second*cluster.Second)
	})
}

func waitingTable(t *table, s api.Session) {
	if len(s.Unplaced) == 0 {
		t.row("no job waits")
		return
	}
	t.row("WAITING")
	rows(t, s.Unplaced, someRows, func(u scheduling.Unplaced) {
		t.row(fmt.Sprintf("%s  %s", u.Code, whoWaits(u)))
		t.paragraph(2, u.Why)
		t.paragraph(2, "to change: "+u.Change)
	})
}

// whoWaits says how many jobs wait for the same, and which.
func whoWaits(u scheduling.Unplaced) string {
	text := jobsWait(u.Count)
	if u.Count > int64(len(u.Jobs)) {
		text += ", elements of arrays counted"
	}
	return text + ": " + jobRange(u.Jobs)
}

// jobRange names the first jobs of a list.
func jobRange(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = fmt.Sprint(id)
	}
	return shortList(texts)
}

// shortList shows the first few of a list.
func shortList(texts []string) string {
	const shown = 5
	if len(texts) <= shown {
		return dash(strings.Join(texts, ", "))
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:shown], ", "), len(texts)-shown)
}

func element(job, element int64) string {
	if element == 0 {
		return fmt.Sprint(job)
	}
	return fmt.Sprintf("%d[%d]", job, element)
}

func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func newSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use: "snapshot", Short: "Save the state that sessions judge", Args: cobra.NoArgs,
		Long: "Save the state that sessions judge: hosts, resources, loans, offers and jobs, so that sessions can be run on it\n" +
			"elsewhere with `xce-elastic session --snapshot`. It holds the names of users, jobs, commands and folders, and is for\n" +
			"administrators; with --hash, it has hashes in their place, the same for the same name within the file.",
		Example: "  xce-elastic snapshot --hash --out state.json",
	}
	flags := cmd.Flags()
	hash := flags.Bool("hash", false, "put hashes in place of the names of users, jobs, commands and folders")
	out := flags.String("out", "", "file to save it in (default, and -, standard output)")
	force := flags.Bool("force", false, "replace a file that is there already")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *out == "-" {
			*out = ""
		}
		if err := free(*out, *force); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		state, err := c.Snapshot(cmd.Context(), *hash)
		var no *api.Error
		if errors.As(err, &no) && no.Status == http.StatusForbidden && !*hash {
			return fmt.Errorf("%w; whoever may read can save one with --hash", err)
		}
		if err != nil {
			return err
		}
		if ps := snapshot.Validate(state.State); len(ps) > 0 {
			fmt.Fprintf(cmd.ErrOrStderr(), "it is saved, but will not be read without changes:\n  %s\n", strings.ReplaceAll(ps.Error(), "\n", "\n  "))
		}
		if *out == "" {
			return state.Write(cmd.OutOrStdout())
		}
		if err := save(state, *out, *force); err != nil {
			return err
		}
		err = say(cmd.OutOrStdout(), "%s has the state of %s at %s: %s, %d run\n", *out, state.Cluster, stamp(state.Taken), jobsWait(int64(len(state.State.Jobs))), len(state.State.Running))
		return err
	}
	return cmd
}

// free refuses what is there already: a file, unless it may be replaced, and
// whatever is no file always.
func free(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case path == "" || err != nil:
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", path)
	case info.Mode()&os.ModeSymlink != 0:
		return fmt.Errorf("%s is a symbolic link; name a file itself, or leave out --out to print", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file; leave out --out to print", path)
	case !force:
		return fmt.Errorf("%s is there already; name another file, or replace it with --force", path)
	}
	return nil
}

// save writes a snapshot to a file that only its owner can read, whole or not at all.
func save(state snapshot.Snapshot, path string, force bool) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("--out: %w; name a file in a folder that is there and writable", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("--out: %w", err), os.Remove(file.Name()))
		}
	}()
	if err := writeOut(state, file); err != nil {
		return err
	}
	if force {
		if err := free(path, force); err != nil { // it may have come since
			return err
		}
		return os.Rename(file.Name(), path)
	}
	if err := os.Link(file.Name(), path); err != nil { // unlike a renaming, it replaces nothing
		return err
	}
	return os.Remove(file.Name())
}

// writeOut writes a snapshot onto the disk.
func writeOut(state snapshot.Snapshot, file *os.File) error {
	err := state.Write(file)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}
