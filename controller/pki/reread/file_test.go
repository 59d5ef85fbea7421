package reread_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xce.internal/elastic/controller/pki/reread"
)

// words are files that must all be there and hold no "bad".
func words(t *testing.T, told *[]error) (paths []string, f *reread.File[string], reads *int) {
	t.Helper()
	folder := t.TempDir()
	paths, reads = []string{filepath.Join(folder, "a"), filepath.Join(folder, "b")}, new(int)
	put(t, paths[0], "one")
	put(t, paths[1], "two")
	f, err := reread.Open(func() (string, error) {
		*reads++
		a, err := os.ReadFile(paths[0])
		b, err2 := os.ReadFile(paths[1])
		text := string(a) + " " + string(b)
		if strings.Contains(text, "bad") {
			err = errors.New(text)
		}
		return text, errors.Join(err, err2)
	}, func(err error) { *told = append(*told, err) }, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return paths, f, reads
}

// put writes a file as others do: whole, in the place of the old one.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreReadAgainOnlyWhenTheyChanged(t *testing.T) {
	t.Parallel()
	var told []error
	paths, f, reads := words(t, &told)
	for range 3 {
		if got := f.Get(); got != "one two" || *reads != 1 {
			t.Fatalf("got %q after %d readings", got, *reads)
		}
	}
	put(t, paths[1], "three")
	if got := f.Get(); got != "one three" || *reads != 2 || len(told) > 0 {
		t.Errorf("got %q after %d readings, told %v", got, *reads, told)
	}
}

func TestWhatCannotBeReadLeavesWhatWasReadAndIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"a file that holds nonsense": func(path string) error { return os.WriteFile(path, []byte("bad"), 0o600) },
		"a file that is gone":        os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []error
			paths, f, _ := words(t, &told)
			if err := spoil(paths[0]); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if got := f.Get(); got != "one two" {
					t.Errorf("got %q", got)
				}
			}
			if len(told) != 1 {
				t.Errorf("told %d times: %v", len(told), told)
			}
			put(t, paths[0], "four")
			if got := f.Get(); got != "four two" || len(told) != 1 {
				t.Errorf("got %q, told %v", got, told)
			}
		})
	}
}
