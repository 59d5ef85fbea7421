package store

import (
	"cmp"
	"maps"
	"slices"
)

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
	if m.stale == nil {
		m.stale, m.inHand = map[K]bool{}, map[K]bool{}
	}
	m.stale[key], m.inHand[key] = true, true
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
