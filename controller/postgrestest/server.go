// Package postgrestest runs a private PostgreSQL for tests, from the programs of
// Debian's package: in a folder of its own, reached by a socket in it, and gone
// without a trace when the test's program ends, however it does.
package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options say what server to run.
type Options struct {
	// TCP has it serve a port of the loopback interface too, where it wants a password.
	TCP bool
	// Durable has it write to the disk what it commits, as in real life.
	Durable bool
}

// Server is a PostgreSQL server of a test.
type Server struct {
	Options
	programs, folder string
	port             int
	owner            *syscall.Credential // nil where we are no one special

	leave io.WriteCloser // ends the server
	ended chan struct{}
}

// Start starts a server; the test is skipped where there is no PostgreSQL.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	programs := need(tb)
	s, err := start(programs, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.end("") })
	return s
}

// need answers the folder of PostgreSQL's programs, or skips the test.
func need(tb testing.TB) string {
	tb.Helper()
	programs, err := findPrograms()
	if err != nil {
		tb.Skipf("%v: %s is skipped; `apt-get install postgresql` brings it", err, tb.Name())
	}
	return programs
}

// Installed tells whether there is a PostgreSQL to run.
func Installed() bool {
	_, err := findPrograms()
	return err == nil
}

// findPrograms answers the folder of the newest version there is.
func findPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	version := func(path string) int {
		n, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return n
	}
	if len(found) > 0 {
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("there is no PostgreSQL here")
	}
	return filepath.Dir(path), nil
}

func start(programs string, o Options) (*Server, error) {
	s := &Server{Options: o, programs: programs, port: 5432}
	var err error
	if s.owner, err = someoneElse(); err != nil {
		return nil, err
	}
	if o.TCP {
		if s.port, err = freePort(); err != nil {
			return nil, err
		}
	}
	if s.folder, err = os.MkdirTemp("", "xce-pg-"); err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	if err := s.makePassword(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	// Texts are ordered as in English, not by their bytes: the store must not rely on that.
	initialise := s.command(filepath.Join(programs, "initdb"), "-D", s.data(), "-U", userName, "-E", "UTF8", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+filepath.Join(s.folder, "password"),
		"--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en")
	if out, err := initialise.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(s.folder))
	}
	return s, s.begin()
}

// makePassword makes the password of whoever connects over the network, and a
// password file for clients, and gives the server its folder.
func (s *Server) makePassword() error {
	password := rand.Text()
	for name, text := range map[string]string{"password": password + "\n", "passfile": "*:*:*:" + userName + ":" + password + "\n"} {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("make a password for PostgreSQL: %w", err)
		}
	}
	if s.owner == nil {
		return nil
	}
	for _, path := range []string{s.folder, filepath.Join(s.folder, "password"), filepath.Join(s.folder, "passfile")} {
		if err := os.Chown(path, int(s.owner.Uid), int(s.owner.Gid)); err != nil {
			return fmt.Errorf("give PostgreSQL its folder: %w", err)
		}
	}
	return nil
}

// userName is who connects.
const userName = "xce"

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// someoneElse answers another user where we are root, as whom PostgreSQL will not run.
func someoneElse() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(uidErr, gidErr)
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.folder
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner, Setpgid: true}
	return cmd
}

// guard runs the server until its own standard input ends, which it does when
// the test's program is gone. It then stops the server, and removes its folder
// unless it was told "keep".
const guard = `folder=$1; shift
"$@" >>"$folder/log" 2>&1 </dev/null &
server=$!
how=$(cat)
if [ "$how" = keep ]; then kill -INT $server; else kill -QUIT $server; fi
wait $server
if [ "$how" != keep ]; then rm -rf "$folder"; fi`

// begin starts the server, and waits until it answers.
func (s *Server) begin() error {
	listen := ""
	if s.TCP {
		listen = "127.0.0.1"
	}
	settings := []string{
		"listen_addresses=" + listen, "port=" + strconv.Itoa(s.port), "unix_socket_directories=" + s.folder, "max_connections=200",
		"shared_buffers=32MB", "logging_collector=off", "autovacuum_naptime=10s",
	}
	if !s.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off", "synchronous_commit=off")
	}
	args := []string{"-c", guard, "guard", s.folder, filepath.Join(s.programs, "postgres"), "-D", s.data()}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	cmd := s.command("/bin/sh", args...)
	var err error
	if s.leave, err = cmd.StdinPipe(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return s.await(time.Minute)
}

// await waits until the server answers.
func (s *Server) await(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := s.Do(ctx, "postgres", "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			return fmt.Errorf("PostgreSQL does not answer: %w: %s", err, log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Address answers the address of a database of the server, by its socket.
func (s *Server) Address(database string) string {
	return fmt.Sprintf("postgres:///%s?host=%s&port=%d&user=%s", database, s.folder, s.port, userName)
}

// Port answers the port that is served on the loopback interface.
func (s *Server) Port() int { return s.port }

// AddressAt answers the address of a database as reached at a host and port, such
// as those of a proxy; the password is in a file that it names.
func (s *Server) AddressAt(at, database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&passfile=%s", userName, at, database, filepath.Join(s.folder, "passfile"))
}

// Do runs statements in a database.
func (s *Server) Do(ctx context.Context, database, statements string) error {
	conn, err := pgx.Connect(ctx, s.Address(database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statements, pgx.QueryExecModeSimpleProtocol)
	return err
}

// Stop stops the server, which ends all connections.
func (s *Server) Stop() { s.end("keep") }

// Kill kills the server, as a machine that fails does.
func (s *Server) Kill() error {
	data, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("find PostgreSQL's process: %w", err)
	}
	pid, _, _ := strings.Cut(string(data), "\n")
	children, _ := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err := signal(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill PostgreSQL: %w", err)
	}
	for _, child := range strings.Fields(string(children)) { // none starts while they hold its memory
		for signal(child, 0) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	s.end("keep")
	return nil
}

func signal(pid string, what syscall.Signal) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	return syscall.Kill(n, what)
}

// Restart starts a server anew that was stopped or killed.
func (s *Server) Restart() error { return s.begin() }

// end ends the server. Without "keep" its folder is removed.
func (s *Server) end(how string) {
	_, _ = io.WriteString(s.leave, how)
	_ = s.leave.Close()
	<-s.ended
}
