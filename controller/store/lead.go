package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"xce.internal/elastic/cluster"
)

// Lead says which of the controllers that share a state runs the sessions. The
// epoch rises with every controller that takes it.
type Lead struct {
	bun.BaseModel `bun:"table:lead"`

	ID       int64 `bun:",pk"`
	Instance string
	Name     string
	Epoch    int64
	Until    cluster.Time
}

// Lead answers who runs the sessions, and until when; a row without instance
// where no one ever did.
func (t *Tx) Lead() (Lead, error) {
	rows, err := all[Lead](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q })
	if err != nil || len(rows) == 0 {
		return Lead{}, err
	}
	return rows[0], nil
}

// TakeLead takes or keeps the right to run sessions, unless another controller
// has it now; it answers who has it.
func (t *Tx) TakeLead(instance, name string, ttl cluster.Duration) (Lead, error) {
	lead, err := t.Lead()
	if err != nil || lead.Instance != instance && lead.Until > t.now {
		return lead, err
	}
	switch {
	case lead.Instance != instance:
		lead.Epoch++
	case lead.Until >= t.now.Add(fresh(ttl)):
		return lead, nil
	}
	lead.ID, lead.Instance, lead.Name, lead.Until = 1, instance, name, t.now.Add(ttl)
	return lead, t.save(&lead, "id", "instance", "name", "epoch", "until")
}

// fresh is how much of the time to live must be left for it not to be counted
// anew: where nothing happens, not every session is to write to the disk.
func fresh(ttl cluster.Duration) cluster.Duration { return ttl * 2 / 3 }

// ProlongLead counts the time to live of the right to run sessions from now on,
// however long the transaction took. It must have been taken in the transaction.
func (t *Tx) ProlongLead(ttl cluster.Duration) error {
	_, err := t.tx.ExecContext(t.ctx, "UPDATE lead SET until = "+clockMillis+" + ? WHERE until < "+clockMillis+" + ?", int64(ttl), int64(fresh(ttl)))
	if err != nil {
		return fmt.Errorf("prolong the right to run sessions: %w", err)
	}
	return nil
}

// GiveUpLead lets others run the sessions from now on.
func (t *Tx) GiveUpLead(instance string) error {
	result, err := t.tx.ExecContext(t.ctx, "UPDATE lead SET until = 0 WHERE instance = ?", instance)
	if err != nil {
		return fmt.Errorf("give up the right to run sessions: %w", err)
	}
	if n, _ := result.RowsAffected(); n > 0 {
		t.news.Lead = true
	}
	return nil
}

// Controller is a process that shares the state, and when it was there last.
type Controller struct {
	bun.BaseModel `bun:"table:controllers"`

	Instance string `bun:",pk"`
	Name     string
	Release  string
	Since    cluster.Time
	Seen     cluster.Time
}

// Controllers lists the controllers that share the state.
func (t *Tx) Controllers() ([]Controller, error) {
	return all[Controller](t, ordered("name", "instance"))
}

// heardRow is when a host was heard of last, by whichever controller.
type heardRow struct {
	bun.BaseModel `bun:"table:heard"`

	Host string `bun:",pk"`
	At   cluster.Time
}

// sessionRow is what the last session came to.
type sessionRow struct {
	bun.BaseModel `bun:"table:last_session"`

	ID      int64 `bun:",pk"`
	At      cluster.Time
	Session string
}

// LastSession answers what was kept of the last session, and when that ran; nil
// where nothing was.
func (t *Tx) LastSession() (at cluster.Time, session []byte, err error) {
	rows, err := all[sessionRow](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q })
	if err != nil || len(rows) == 0 {
		return 0, nil, err
	}
	return rows[0].At, []byte(rows[0].Session), nil
}

// Beat is what a controller tells the others now and then.
type Beat struct {
	Instance, Name, Release string
	// Heard are hosts that it has heard of, and when.
	Heard map[string]cluster.Time
	// Session is what its last session came to, and SessionAt when that ran; nil for none.
	Session   []byte
	SessionAt cluster.Time
	// After limits what is answered to hosts that were heard of since.
	After cluster.Time
}

// Pulse is what a controller learns from the others.
type Pulse struct {
	Now   cluster.Time
	Heard map[string]cluster.Time
}

const (
	// beatLimit ends a beat that takes longer.
	beatLimit = 5 * time.Second
	// forgetAfter is how long controllers and hosts are remembered that are silent.
	forgetAfter = 24 * cluster.Hour
)

// Beat tells the others what a controller has heard and done, and answers what
// they have heard. It waits for no one who writes, and others do not wait for it;
// of what a server forgets that fails, it tells again.
func (s *Store) Beat(ctx context.Context, b Beat) (Pulse, error) {
	pulse := Pulse{Heard: map[string]cluster.Time{}}
	ctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	err := s.db.RunInTx(ctx, &sql.TxOptions{}, func(ctx context.Context, tx bun.Tx) error {
		t := &Tx{ctx: ctx, tx: tx, store: s}
		if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
			return err
		}
		if err := t.readTurn(); err != nil {
			return err
		}
		pulse.Now = t.now
		if err := errors.Join(t.beThere(b), t.tellHeard(b.Heard), t.tellSession(b)); err != nil {
			return err
		}
		rows, err := all[heardRow](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("at > ?", b.After) })
		for _, r := range rows {
			pulse.Heard[r.Host] = r.At
		}
		return err
	})
	if err != nil {
		return pulse, fmt.Errorf("tell the other controllers: %w", err)
	}
	return pulse, nil
}

// beThere notes that the controller is there, and forgets who was not for long.
func (t *Tx) beThere(b Beat) error {
	row := Controller{Instance: b.Instance, Name: b.Name, Release: b.Release, Since: t.now, Seen: t.now}
	if err := t.save(&row, "instance", "seen"); err != nil {
		return err
	}
	_, err := t.tx.NewDelete().Model((*Controller)(nil)).Where("seen < ?", t.now.Add(-forgetAfter)).Exec(t.ctx)
	if err == nil {
		_, err = t.tx.NewDelete().Model((*heardRow)(nil)).Where("at < ?", t.now.Add(-forgetAfter)).Exec(t.ctx)
	}
	if err != nil {
		return fmt.Errorf("forget who was silent for long: %w", err)
	}
	return nil
}

// tellHeard keeps the latest time of each host. All do so in the same order, so
// that none waits for another in a circle.
func (t *Tx) tellHeard(heard map[string]cluster.Time) error {
	if len(heard) == 0 {
		return nil
	}
	rows := make([]heardRow, 0, len(heard))
	for _, host := range slices.Sorted(maps.Keys(heard)) {
		rows = append(rows, heardRow{Host: host, At: heard[host]})
	}
	_, err := t.tx.NewInsert().Model(&rows).On("CONFLICT (host) DO UPDATE").Set("at = greatest(heard_row.at, EXCLUDED.at)").Exec(t.ctx)
	if err != nil {
		return fmt.Errorf("tell which hosts were heard of: %w", err)
	}
	return nil
}

func (t *Tx) tellSession(b Beat) error {
	if b.Session == nil {
		return nil
	}
	row := sessionRow{ID: 1, At: b.SessionAt, Session: string(b.Session)}
	_, err := t.tx.NewInsert().Model(&row).On("CONFLICT (id) DO UPDATE").Set("at = EXCLUDED.at").Set("session = EXCLUDED.session").
		Where("session_row.at <= EXCLUDED.at").Exec(t.ctx)
	if err != nil {
		return fmt.Errorf("tell what the last session came to: %w", err)
	}
	return nil
}

// Leave notes that a controller is there no more.
func (s *Store) Leave(ctx context.Context, instance string) error {
	_, err := s.db.NewDelete().Model((*Controller)(nil)).Where("instance = ?", instance).Exec(ctx)
	if err != nil {
		return fmt.Errorf("leave the other controllers: %w", err)
	}
	return nil
}

// Claim makes a cluster the one that has the state. It answers which one has it.
func (t *Tx) Claim(cluster string) (string, error) {
	if t.store.shared == nil {
		return cluster, nil
	}
	var owner string
	if err := t.tx.QueryRowContext(t.ctx, "SELECT cluster FROM turn").Scan(&owner); err != nil {
		return "", fmt.Errorf("read whose state it is: %w", err)
	}
	if owner != "" {
		return owner, nil
	}
	if _, err := t.tx.ExecContext(t.ctx, "UPDATE turn SET cluster = ?", cluster); err != nil {
		return "", fmt.Errorf("note whose state it is: %w", err)
	}
	return cluster, nil
}
