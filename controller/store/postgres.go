package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"xce.internal/elastic/cluster"
)

// On PostgreSQL several controllers share one state. One of them writes at a
// time, as on SQLite: a transaction that may write begins by taking a lock that
// all agree on. So transactions are seen in the order in which they are numbered,
// and what one touched can be named to those who come after it.

// lockKey is the advisory lock of whoever writes; migrateKey that of whoever
// migrates. Both are of the schema, so that clusters can have one each.
const (
	lockKey    = "7889765, hashtext(current_schema())"
	migrateKey = "7889766, hashtext(current_schema())"
)

const (
	// mostConnections is how many connections one controller has, one of which writes.
	mostConnections = 8
	// pauseLimit is how long a transaction may do nothing before the server ends it:
	// a controller that was stopped amid one must not hold up the others.
	pauseLimit = 5 * time.Second
	// lockLimit is how long a transaction waits for its turn.
	lockLimit = 20 * time.Second
	// transactionLimit ends every transaction.
	transactionLimit = 45 * time.Second
	// connectLimit is how long connecting may take where the address says nothing of it.
	connectLimit = 5 * time.Second
)

// shared is what a store has that several controllers use.
type shared struct {
	config *pgx.ConnConfig
	// writer names this process among those that use the state.
	writer string
	// offset is how far the database's clock is ahead of ours, as seen last.
	offset atomic.Int64
	// reading guards the mirrors of transactions that only read.
	reading sync.Mutex
	read    mirrors
}

// IsShared tells whether a state is a database that several controllers can share,
// and no file.
func IsShared(state string) bool {
	return strings.HasPrefix(state, "postgres://") || strings.HasPrefix(state, "postgresql://")
}

// CheckAddress refuses the address of a database that cannot be read, or that
// has a password in it. What it says does not have the password.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return errors.New("it is no address that can be read; write postgres://USER@HOST:PORT/DATABASE")
	}
	_, password := u.User.Password()
	if password || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return errors.New("it has a password in it, which would be seen in files, process lists and logs; put it in a password file that only the controller can read, and name that as passfile=FILE in the address or in PGPASSFILE")
	}
	return nil
}

func sharedConfig(address string) (*pgx.ConnConfig, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	if os.Getenv("PGPASSWORD") != "" {
		return nil, errors.New("PGPASSWORD is set, which others can see; put the password in a file and name that in PGPASSFILE")
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, fmt.Errorf("it cannot be used: %w", err)
	}
	// Statements are written out in full, so that preparing them gains nothing.
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	if config.ConnectTimeout == 0 || config.ConnectTimeout > 2*time.Minute {
		config.ConnectTimeout = connectLimit
	}
	for name, value := range map[string]string{
		"application_name":                    "xce-elastic",
		"idle_in_transaction_session_timeout": millis(pauseLimit),
		"lock_timeout":                        millis(lockLimit),
		"statement_timeout":                   millis(transactionLimit),
		// What was answered must not be lost, whatever the server does by default.
		"synchronous_commit": "on",
	} {
		if _, said := config.RuntimeParams[name]; !said {
			config.RuntimeParams[name] = value
		}
	}
	return config, nil
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// openShared opens the state in a database, and brings its tables up to date.
func openShared(ctx context.Context, address string) (*Store, error) {
	config, err := sharedConfig(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the state: %w", err)
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(mostConnections)
	pool.SetMaxIdleConns(mostConnections)
	pool.SetConnMaxIdleTime(5 * time.Minute)
	s := &Store{db: bun.NewDB(pool, pgdialect.New()), turn: make(chan struct{}, 1), shared: &shared{config: config, writer: rand.Text()}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("bring the state in database %s at %s up to date: %w", config.Database, config.Host, err), s.Close())
	}
	return s, nil
}

// prepare refuses a database that cannot keep every text as it is, and migrates
// it, one controller after the other.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var encoding string
	if err := conn.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf("its encoding is %s; make one with `createdb -T template0 -E UTF8`", encoding)
	}
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock("+migrateKey+")"); err != nil {
		return fmt.Errorf("wait for others that migrate: %w", err)
	}
	defer func() { _, _ = conn.ExecContext(ctx, "SELECT pg_advisory_unlock("+migrateKey+")") }()
	if err := s.migrate(ctx, sharedMigrations); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, orderByBytes)
	return err
}

// orderByBytes has all texts ordered as SQLite and Go order them, whatever the
// language of the database.
const orderByBytes = `DO $$
DECLARE c record;
BEGIN
  FOR c IN SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
    WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'
  LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE text COLLATE "C"', c.table_name, c.column_name);
  END LOOP;
END $$`

// turnRow says where the count of transactions is.
type turnRow struct {
	Seq   int64  // of the last one that wrote
	Mark  string // of the same, which no other has
	Freed int64  // of the last one that may have made something free
}

// takeTurn waits until no other controller writes, and reads where the count is.
func (t *Tx) takeTurn() error {
	if _, err := t.tx.ExecContext(t.ctx, "SELECT pg_advisory_xact_lock("+lockKey+")"); err != nil {
		return fmt.Errorf("wait for the turn to write: %w", err)
	}
	return t.readTurn() // a statement of its own, which sees what others wrote
}

func (t *Tx) readTurn() error {
	var now int64
	row := t.tx.QueryRowContext(t.ctx, "SELECT seq, mark, freed, "+clockMillis+" FROM turn")
	if err := row.Scan(&t.count.Seq, &t.count.Mark, &t.count.Freed, &now); err != nil {
		return fmt.Errorf("read whose turn it is: %w", err)
	}
	t.now = cluster.Time(now)
	t.store.shared.offset.Store(now - time.Now().UnixMilli())
	return nil
}

// clockMillis is the time of the database.
const clockMillis = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"

// touchedRow names a mirrored row that a transaction wrote, or its mark.
type touchedRow struct {
	bun.BaseModel `bun:"table:touched"`

	Seq  int64  `bun:",pk"`
	Kind string `bun:",pk"`
	Key  string `bun:",pk"`
}

// keepTouched is for how many transactions it is known what they touched;
// every pruneEvery the rest is forgotten.
const (
	keepTouched = 10_000
	pruneEvery  = 1_000
)

// catchUp has mirrors read anew what others wrote since they were looked at last.
func (t *Tx) catchUp(m *mirrors) error {
	if m.seq == t.count.Seq && m.mark == t.count.Mark {
		return nil
	}
	if !m.empty() {
		rows, err := all[touchedRow](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("seq >= ?", m.seq) })
		if err != nil {
			return err
		}
		if err := m.tellAll(rows); err != nil {
			return err
		}
	}
	m.seq, m.mark = t.count.Seq, t.count.Mark
	return nil
}

// finish counts the transaction where it wrote anything, and tells the others of it.
func (t *Tx) finish() error {
	news, err := t.news.encode(t.store.shared.writer)
	if err != nil {
		return err
	}
	freed := "freed"
	if t.frees {
		freed = "seq + 1"
	}
	mark := rand.Text()
	// Whether anything was written the server knows best.
	row := t.tx.QueryRowContext(t.ctx, `WITH counted AS (
		UPDATE turn SET seq = seq + 1, mark = ?, freed = `+freed+` WHERE pg_current_xact_id_if_assigned() IS NOT NULL RETURNING seq
	) SELECT seq, CAST(CASE WHEN ? = '' THEN '' ELSE CAST(pg_notify(`+channel+`, ?) AS TEXT) END AS TEXT) FROM counted`, mark, news, news)
	var seq int64
	var told string
	switch err := row.Scan(&seq, &told); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("count the transaction: %w", err)
	}
	rows := append(t.mirrors.touched(seq), touchedRow{Seq: seq, Kind: markKind, Key: mark})
	if _, err := t.tx.NewInsert().Model(&rows).Exec(t.ctx); err != nil {
		return fmt.Errorf("note what was touched: %w", err)
	}
	t.count.Seq, t.count.Mark = seq, mark
	return t.prune()
}

func (t *Tx) prune() error {
	if t.count.Seq%pruneEvery != 0 || t.count.Seq <= keepTouched {
		return nil
	}
	before := t.count.Seq - keepTouched
	if _, err := t.tx.NewDelete().Model((*touchedRow)(nil)).Where("seq <= ?", before).Exec(t.ctx); err != nil {
		return fmt.Errorf("forget what was touched long ago: %w", err)
	}
	return nil
}
