package main

import "xce.internal/elastic/providers/scripts/statefile"

// poolFile is where a pool is kept.
type poolFile struct{ path string }

func openFile(path string) (poolFile, error) {
	file, err := statefile.Open("pool", path)
	return poolFile{file.Path}, err
}

func (f poolFile) file() statefile.File { return statefile.File{Path: f.path, Script: "pool"} }

func (f poolFile) read() (*pool, error) {
	p := new(pool)
	return p, f.file().Read(p)
}

// change reads the pool, applies act and writes it back, with nobody else in between. When act fails,
// nothing is written.
func (f poolFile) change(act func(*pool) error) error {
	p := new(pool)
	return f.file().Change(p, func() error { return act(p) })
}
