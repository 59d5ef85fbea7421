package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteschema "go.temporal.io/server/schema/sqlite"
	_ "modernc.org/sqlite" // the driver; Temporal's plugin uses the same one
)

// uriPath escapes a path for SQLite's "file:" names.
func uriPath(path string) string {
	return (&url.URL{Path: path}).EscapedPath()
}

func openSQLite(path, parameters string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", "file:"+uriPath(path)+"?"+parameters)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// createSchema makes a new database of the server's schema. It is built
// beside its final name and renamed, so it is never there by half.
func createSchema(ctx context.Context, path string) error {
	building := path + ".new"
	// What is left of an earlier database of that name must not be replayed
	// into the new one. SQLite too drops the log of an empty database.
	for _, stale := range []string{building, building + "-journal", path + "-wal", path + "-shm", path + "-journal"} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("database %s: cannot remove a left-over file, remove it by hand: %w", path, err)
		}
	}
	db, err := openSQLite(building, "mode=rwc")
	if err != nil {
		return fmt.Errorf("database %s cannot be created: %w", path, err)
	}
	if err := errors.Join(writeSchema(ctx, db), db.Close()); err != nil {
		return fmt.Errorf("database %s cannot be created, check the rights of its folder and the space on the disk: %w", path, err)
	}
	if err := os.Rename(building, path); err != nil {
		return fmt.Errorf("database %s cannot be created: %w", path, err)
	}
	return nil
}

// writeSchema writes Temporal's schema in one transaction.
func writeSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := sqliteschema.SetupSchemaOnDB(schemaTarget{tx: tx}); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// schemaTarget lets SetupSchemaOnDB write into a transaction. Exec is the
// only method it calls.
type schemaTarget struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (t schemaTarget) Exec(statement string, args ...any) error {
	_, err := t.tx.Exec(statement, args...)
	return err
}

// checkContent refuses a database that is damaged or not of this server's
// schema. It opens the file read-only.
func checkContent(ctx context.Context, path string) error {
	db, err := openSQLite(path, "mode=ro")
	if err != nil {
		return fmt.Errorf("database %s cannot be opened: %w; %s", path, err, remedyDatabase)
	}
	defer db.Close()
	if err := quickCheck(ctx, db); err != nil {
		return fmt.Errorf("database %s is damaged: %w; %s", path, err, remedyDatabase)
	}
	if err := checkSchema(ctx, db); err != nil {
		return fmt.Errorf("database %s was not made by this version of devserver: %w; %s", path, err, remedyDatabase)
	}
	return nil
}

func quickCheck(ctx context.Context, db *sql.DB) error {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return errors.New(verdict)
	}
	return nil
}

// checkSchema compares with a fresh schema in memory: Temporal neither checks
// nor upgrades the schema of an SQLite database.
func checkSchema(ctx context.Context, db *sql.DB) error {
	fresh, err := openSQLite(":memory:", "")
	if err != nil {
		return err
	}
	defer fresh.Close()
	if err := writeSchema(ctx, fresh); err != nil {
		return err
	}
	want, err := readSchema(ctx, fresh)
	if err != nil {
		return err
	}
	have, err := readSchema(ctx, db)
	if err != nil {
		return err
	}
	for name, definition := range want {
		switch found, ok := have[name]; {
		case !ok:
			return fmt.Errorf("it has no %s", name)
		case found != definition:
			return fmt.Errorf("its %s is of another version of Temporal", name)
		}
	}
	return nil
}

// readSchema maps "table NAME" or "index NAME" to its definition.
func readSchema(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT type || ' ' || name, sql FROM sqlite_master WHERE sql IS NOT NULL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	definitions := map[string]string{}
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			return nil, err
		}
		definitions[name] = definition
	}
	return definitions, rows.Err()
}

// checkpoint moves the write-ahead log into the database file.
func checkpoint(path string) error {
	db, err := openSQLite(path, "mode=rw&_pragma=busy_timeout=1000")
	if err != nil {
		return fmt.Errorf("database %s: cannot merge its log: %w", path, err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("database %s: cannot merge its log, the next start will: %w", path, err)
	}
	return nil
}
