package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"xce.internal/elastic/cluster"
)

// mirrors are the rows that sessions read again and again.
type mirrors struct {
	hosts mirror[string, Host]
	idle  mirror[string, cluster.Time]
	jobs  mirror[int64, cluster.Job] // those that have not ended
	// seq and mark are those of the last transaction that they know of, where
	// controllers share the state.
	seq  int64
	mark string
}

// Names of what is mirrored.
const (
	hostKind = "host"
	idleKind = "idle"
	jobKind  = "job"
	markKind = "mark"
)

func (m *mirrors) empty() bool {
	return m.hosts.rows == nil && m.idle.rows == nil && m.jobs.rows == nil
}

// end takes note of how the running transaction ended, and what the count is then.
func (m *mirrors) end(undone bool, count turnRow) {
	m.hosts.end(undone)
	m.idle.end(undone)
	m.jobs.end(undone)
	if !undone {
		m.seq, m.mark = count.Seq, count.Mark
	}
}

// touched answers what the running transaction has written.
func (m *mirrors) touched(seq int64) (rows []touchedRow) {
	for _, name := range slices.Sorted(maps.Keys(m.hosts.inHand)) {
		rows = append(rows, touchedRow{Seq: seq, Kind: hostKind, Key: name})
	}
	for _, name := range slices.Sorted(maps.Keys(m.idle.inHand)) {
		rows = append(rows, touchedRow{Seq: seq, Kind: idleKind, Key: name})
	}
	for _, id := range slices.Sorted(maps.Keys(m.jobs.inHand)) {
		rows = append(rows, touchedRow{Seq: seq, Kind: jobKind, Key: strconv.FormatInt(id, 10)})
	}
	return rows
}

// tellAll tells what was touched since the last transaction that they know of, and
// in that. If its mark is not among it, it was long ago, or the database has
// lost it, as one may that takes over from another that fails: then all is read anew.
func (m *mirrors) tellAll(rows []touchedRow) error {
	if !slices.Contains(rows, touchedRow{Seq: m.seq, Kind: markKind, Key: m.mark}) {
		*m = mirrors{}
		return nil
	}
	for _, r := range rows {
		if err := m.tell(r.Kind, r.Key); err != nil {
			return err
		}
	}
	return nil
}

// tell tells that another controller has written a row.
func (m *mirrors) tell(kind, key string) error {
	switch kind {
	case markKind:
	case hostKind:
		m.hosts.outdated(key)
	case idleKind:
		m.idle.outdated(key)
	case jobKind:
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return fmt.Errorf("another controller touched job %q, which is no number", key)
		}
		m.jobs.outdated(id)
	default:
		*m = mirrors{} // of a newer version; what it is cannot be told
	}
	return nil
}

// mirror keeps rows in memory as they were read last, so that a session does not
// read and decode thousands of rows again of which few have changed. A row that
// was written, or that a transaction touched which was then undone, is read anew.
type mirror[K cmp.Ordered, V any] struct {
	rows   map[K]V // nil until all were read once
	order  []K     // the keys in order; nil after one came or went
	stale  map[K]bool
	inHand map[K]bool // written by the transaction that runs
}

// wrote tells that the running transaction has written a row.
func (m *mirror[K, V]) wrote(key K) {
	m.outdated(key)
	m.inHand[key] = true
}

// outdated has a row be read anew.
func (m *mirror[K, V]) outdated(key K) {
	if m.stale == nil {
		m.stale, m.inHand = map[K]bool{}, map[K]bool{}
	}
	m.stale[key] = true
}

// end takes note of how the running transaction ended.
func (m *mirror[K, V]) end(undone bool) {
	if undone {
		maps.Copy(m.stale, m.inHand)
	}
	clear(m.inHand)
}

// all answers all rows in the order of their keys. `load` reads the rows with the
// given keys, or all for nil.
func (m *mirror[K, V]) all(load func(keys []K) (map[K]V, error)) ([]V, error) {
	if err := m.refresh(load); err != nil {
		return nil, err
	}
	if m.order == nil {
		m.order = slices.AppendSeq(make([]K, 0, len(m.rows)), maps.Keys(m.rows))
		slices.Sort(m.order)
	}
	rows := make([]V, len(m.order))
	for i, key := range m.order {
		rows[i] = m.rows[key]
	}
	return rows, nil
}

func (m *mirror[K, V]) refresh(load func(keys []K) (map[K]V, error)) error {
	if m.rows == nil {
		rows, err := load(nil)
		if err != nil {
			return err
		}
		m.rows, m.order = rows, nil
		clear(m.stale)
		return nil
	}
	if len(m.stale) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(m.stale))
	rows, err := load(keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		m.replace(key, rows)
	}
	clear(m.stale)
	return nil
}

// replace takes over what one row is now.
func (m *mirror[K, V]) replace(key K, rows map[K]V) {
	row, there := rows[key]
	if _, was := m.rows[key]; was != there {
		m.order = nil
	}
	if there {
		m.rows[key] = row
	} else {
		delete(m.rows, key)
	}
}
