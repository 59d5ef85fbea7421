package timeskip_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"
	_ "modernc.org/sqlite"

	"xce.internal/elastic/simulation/timeskip"
)

// ledger is a real service on a real database, with the clock of the run.
type ledger struct {
	db  *sql.DB
	now func() time.Time
}

func openLedger(t *testing.T, path string, now func() time.Time) *ledger {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	// The pool has a goroutine, which belongs to the run and must end with it.
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`PRAGMA journal_mode = WAL; CREATE TABLE row (id TEXT PRIMARY KEY, units INT, at TEXT)`); err != nil {
		t.Fatal(err)
	}
	return &ledger{db, now}
}

func (l *ledger) Commit(ctx context.Context, id string, units int) error {
	// A deadline makes the driver start a goroutine for each statement.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it has been committed, or the error is on its way
	_, err = tx.ExecContext(ctx, `INSERT INTO row VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET units = excluded.units`,
		id, units, l.now().Format(time.RFC3339Nano))
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (l *ledger) Total(ctx context.Context) (total int, err error) {
	err = l.db.QueryRowContext(ctx, `SELECT sum(units) FROM row`).Scan(&total)
	return total, err
}

func TestSQLite(t *testing.T) {
	committer := func(ctx workflow.Context, id string) (total int, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for day := range 20 {
			if err := workflow.ExecuteActivity(ctx, "Commit", fmt.Sprintf("%s/%d", id, day), 1).Get(ctx, nil); err != nil {
				return 0, err
			}
			if err := workflow.Sleep(ctx, 24*time.Hour); err != nil {
				return 0, err
			}
		}
		err = workflow.ExecuteActivity(ctx, "Total").Get(ctx, &total)
		return total, err
	}
	faults := func(a timeskip.Attempt) timeskip.Fault {
		if a.Chance(0.1) {
			return timeskip.RunTwice
		}
		return timeskip.None
	}
	for _, path := range []string{":memory:", filepath.Join(t.TempDir(), "ledger.db")} {
		report := timeskip.Run(t, timeskip.Options{Seed: 5, Faults: faults}, func(t *testing.T, h *timeskip.Harness) {
			l := openLedger(t, path, h.Now)
			h.RegisterWorkflow(committer, "committer")
			h.RegisterActivity(l.Commit, "Commit")
			h.RegisterActivity(l.Total, "Total")
			for i := range 10 {
				id := fmt.Sprintf("c-%d", i)
				start(t, h, id, "committer", id)
			}
		})
		for _, w := range report.Workflows {
			var total int
			if err := w.Result(&total); err != nil || total != 200 {
				t.Errorf("%s: total %d, error %v", w.ID, total, err)
			}
		}
	}
}

// clockServer is a real service on a real socket, that tells the virtual time.
func clockServer(t *testing.T, now func() time.Time) (ask func(context.Context) (string, error)) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, now().Format(time.RFC3339Nano))
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.Client().CloseIdleConnections)
	return func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return "", err
		}
		response, err := server.Client().Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		told, err := io.ReadAll(response.Body)
		return string(told), err
	}
}

func TestHTTP(t *testing.T) {
	asker := func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for {
			if err := workflow.ExecuteActivity(ctx, "Ask").Get(ctx, nil); err != nil {
				return err
			}
			if err := workflow.Sleep(ctx, 6*time.Hour); err != nil {
				return err
			}
		}
	}
	run := func() (*timeskip.Report, string) {
		var told []string
		report := timeskip.Run(t, timeskip.Options{Limit: 5 * 24 * time.Hour}, func(t *testing.T, h *timeskip.Harness) {
			ask := clockServer(t, h.Now)
			h.RegisterWorkflow(asker, "asker")
			h.RegisterActivity(func(ctx context.Context) error {
				answer, err := ask(ctx)
				told = append(told, answer)
				return err
			}, "Ask")
			for i := range 20 {
				start(t, h, fmt.Sprintf("a-%d", i), "asker")
			}
		})
		return report, strings.Join(told, "\n")
	}
	first, told := run()
	again, toldAgain := run()
	if diff := first.Trace.Diff(again.Trace); diff != "" || told != toldAgain {
		t.Errorf("runs differ: %s", diff)
	}
	if len(told) < 20*20*len("2026-01-05T00:00:00Z") || strings.Contains(first.Trace.String(), "error") {
		t.Errorf("%s\n%s", told, first.Trace)
	}
}
