package record

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"xce.internal/elastic/cluster/private"
)

// mostFile is how large a file may grow before another is begun.
const mostFile = 32 << 20

// Files answers the files of a record, in the order of their time.
func Files(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if _, ok := numberOf(e.Name()); ok {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		m, _ := numberOf(filepath.Base(a))
		n, _ := numberOf(filepath.Base(b))
		return m - n
	})
	return files, nil
}

const nameForm = "decisions-%06d.jsonl.gz"

// numberOf answers the number in a file's name.
func numberOf(name string) (n int, ok bool) {
	_, err := fmt.Sscanf(name, "decisions-%d.jsonl.gz", &n)
	return n, err == nil && name == fmt.Sprintf(nameForm, n)
}

// create begins the next file of a folder.
func create(folder string) (*file, error) {
	if err := private.Folder(folder); err != nil {
		return nil, err
	}
	files, err := Files(folder)
	if err != nil {
		return nil, err
	}
	n := 1
	if len(files) > 0 {
		last, _ := numberOf(filepath.Base(files[len(files)-1]))
		n = last + 1
	}
	f := &file{path: filepath.Join(folder, fmt.Sprintf(nameForm, n))}
	if f.to, err = private.Open(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	f.zip, _ = gzip.NewWriterLevel(f, gzip.BestSpeed) // a level that there is
	return f, nil
}

// prune removes the oldest files where all have more bytes together, but not the newest.
func prune(folder string, most int64) error {
	files, err := Files(folder)
	if err != nil {
		return err
	}
	sizes := make([]int64, len(files))
	var whole int64
	for i, path := range files {
		info, err := os.Stat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil {
			sizes[i] = info.Size()
			whole += sizes[i]
		}
	}
	for i := 0; i < len(files)-1 && whole > most; i++ {
		if err := os.Remove(files[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		whole -= sizes[i]
	}
	return nil
}
