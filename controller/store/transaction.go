package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/uptrace/bun"

	"xce.internal/elastic/cluster"
)

var (
	// ErrAway tells that the database could not be reached, or was busy for too
	// long. Nothing was changed.
	ErrAway = errors.New("the state's database cannot be reached now")
	// ErrUnknown tells that the connection was lost while the transaction was being
	// committed: whether it was is not known.
	ErrUnknown = errors.New("the connection to the state's database was lost at the last moment; whether the change was made is not known")
)

// Tx is one transaction. Its methods read and write rows; lists are ordered by key.
type Tx struct {
	ctx   context.Context
	tx    bun.Tx
	store *Store

	mirrors  *mirrors
	borrowed bool // the mirrors are to be given back
	now      cluster.Time
	// revision and job are the numbers given out last; 0 while none were.
	revision, job int64

	// Of a state that controllers share.
	count turnRow
	news  News
	frees bool
}

// Now answers the time of the state: that of the database where controllers share
// one, so that all have the same.
func (t *Tx) Now() cluster.Time { return t.now }

// Shared tells whether several controllers can use the state at once.
func (t *Tx) Shared() bool { return t.store.shared != nil }

// Frees tells that the transaction may make something free that jobs wait for.
func (t *Tx) Frees() { t.frees = true }

// Turn answers how many transactions have written anything before this one, and
// which was the last that may have made something free. Both are 0 where one
// controller has the state for itself.
func (t *Tx) Turn() (seq, freed int64) { return t.count.Seq, t.count.Freed }

// Announce has the other controllers be told of what the transaction changed.
func (t *Tx) Announce(n News) { t.news = n }

// Now answers the time of the state, as far as it can be told without asking.
func (s *Store) Now() cluster.Time {
	now := time.Now().UnixMilli()
	if s.shared != nil {
		now += s.shared.offset.Load()
	}
	return cluster.Time(now)
}

// Shared tells whether several controllers can use the state at once.
func (s *Store) Shared() bool { return s.shared != nil }

// Update runs fn in one transaction. An error of fn undoes all of it.
func (s *Store) Update(ctx context.Context, fn func(tx *Tx) error) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t := &Tx{store: s, mirrors: &s.mirrors}
	undone := true
	defer func() {
		s.mirrors.end(undone, t.count)
		<-s.turn
	}()
	err := s.run(ctx, t, nil, func() error {
		if s.shared == nil {
			return fn(t)
		}
		if err := t.takeTurn(); err != nil {
			return err
		}
		if err := t.catchUp(t.mirrors); err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return err
		}
		return t.finish()
	})
	undone = err != nil
	return err
}

// Read runs fn on one consistent state. Where controllers share it, no one waits
// for one who reads.
func (s *Store) Read(ctx context.Context, fn func(tx *Tx) error) error {
	if s.shared == nil {
		return s.Update(ctx, fn)
	}
	t := &Tx{store: s}
	defer t.giveBack()
	return s.run(ctx, t, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}, func() error {
		if err := t.readTurn(); err != nil {
			return err
		}
		return fn(t)
	})
}

// run runs a transaction within a limit of time. A call that is cancelled is
// undone; but once it is being committed, that is carried through, so that it is
// known how it ended.
func (s *Store) run(ctx context.Context, t *Tx, options *sql.TxOptions, fn func() error) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if s.shared != nil { // a file is no one else's, and does not go away
		work, cancel = context.WithTimeout(work, transactionLimit)
	}
	defer cancel()
	release := context.AfterFunc(ctx, cancel)
	defer release()
	tx, err := s.db.BeginTx(work, options)
	if err != nil {
		return s.fault(ctx, fmt.Errorf("begin a transaction: %w", err))
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after a commit
	t.ctx, t.tx, t.now = work, tx, s.Now()
	if err := fn(); err != nil {
		return s.fault(ctx, err)
	}
	if !release() {
		return context.Cause(ctx)
	}
	if err := tx.Commit(); err != nil {
		if s.shared != nil && lost(err) {
			return fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// fault tells apart what is wrong with the call from a database that is away.
func (s *Store) fault(ctx context.Context, err error) error {
	switch {
	case s.shared == nil || !lost(err):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}

// lost tells whether an error is one of the connection, or of a server that
// stops, starts, or has too much to do.
func lost(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		for _, class := range []string{"08", "53", "57", "58", "25P03", "25P04", "55P03"} {
			if strings.HasPrefix(server.Code, class) {
				return true
			}
		}
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, sql.ErrTxDone) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed")
}

// view answers the mirrors that the transaction may use. One that only reads
// borrows those of the store; where another has them, or they are newer than what
// it sees, it has its own, which are empty.
func (t *Tx) view() (*mirrors, error) {
	if t.mirrors != nil {
		return t.mirrors, nil
	}
	own := &mirrors{}
	if s := t.store.shared; s.reading.TryLock() {
		if s.read.seq <= t.count.Seq {
			t.borrowed, own = true, &s.read
		} else {
			s.reading.Unlock()
		}
	}
	t.mirrors = own
	return own, t.catchUp(own)
}

func (t *Tx) giveBack() {
	if t.borrowed {
		t.store.shared.reading.Unlock()
	}
}
