package store_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"xce.internal/elastic/controller/store"
)

// killed answers a state as a killed controller leaves it: what was committed
// last is in the write-ahead log only.
func killed(t *testing.T) string {
	t.Helper()
	path, _ := made(t)
	s := open(t, path)
	save(t, s, store.Host{Name: "h2"})
	left := filepath.Join(t.TempDir(), "state.db")
	write(t, left, read(t, path))
	write(t, left+"-wal", read(t, path+"-wal"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return left
}

func TestWhatIsInTheWriteAheadLogOnlyIsNotLost(t *testing.T) {
	t.Parallel()
	s := open(t, killed(t))
	defer s.Close()
	if names := hosts(t, s); len(names) != 2 {
		t.Errorf("hosts are %v, want h1 and h2", names)
	}
}

func TestTheWriteAheadLogOfACorruptFileIsKept(t *testing.T) {
	t.Parallel()
	path := killed(t)
	content, log := read(t, path), read(t, path+"-wal")
	spoilt := append(bytes.Clone(content[:8192]), bytes.Repeat([]byte{0xff}, len(content)-8192)...)
	write(t, path, spoilt)
	_, err := store.Open(t.Context(), path)
	if err == nil {
		t.Fatal("a corrupt file is taken")
	}
	wantRemedy(t, err, path, "is corrupt")
	if !bytes.Equal(read(t, path), spoilt) || !bytes.Equal(read(t, path+"-wal"), log) {
		t.Error("the corrupt file or its log was changed")
	}
	write(t, path, content) // the backup
	s := open(t, path)
	defer s.Close()
	if names := hosts(t, s); len(names) != 2 {
		t.Errorf("after the backup hosts are %v, want h1 and h2", names)
	}
}
