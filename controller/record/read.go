package record

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Place is where an entry stands.
type Place struct {
	File string
	Line int64
}

// String answers FILE:LINE.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Read reads a file of a record from its begin, and hands each entry over. It tells whether the file's end is cut
// off, as it is while a controller writes it, and where one was killed: what is whole before that is read.
func Read(path string, each func(Place, Entry) error) (head Head, cut bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return head, false, err
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<16))
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return head, true, nil
	case err != nil:
		return head, false, damaged(Place{path, 1}, err)
	}
	r := reader{place: Place{File: path}, lines: bufio.NewReaderSize(unzipped, 1<<16), sessions: newSessions()}
	cut, err = r.all(&head, each)
	return head, cut, err
}

type reader struct {
	place    Place
	lines    *bufio.Reader
	sessions sessions
}

func (r *reader) all(head *Head, each func(Place, Entry) error) (cut bool, err error) {
	for r.place.Line = 1; ; r.place.Line++ {
		text, err := r.lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return true, nil
		case errors.Is(err, io.EOF):
			return len(text) > 0, nil
		case err != nil:
			return false, damaged(r.place, err)
		case r.place.Line == 1:
			if err := r.head(text, head); err != nil {
				return false, err
			}
			continue
		}
		e, err := r.entry(text)
		if err != nil {
			return false, damaged(r.place, err)
		}
		if err := each(r.place, e); err != nil {
			return false, err
		}
	}
}

func (r *reader) head(text []byte, head *Head) error {
	if err := json.Unmarshal(text, head); err != nil || head.Format != Format {
		return fmt.Errorf("%s: it is no record of decisions; take it out of the folder", r.place)
	}
	if head.Version != Version {
		return fmt.Errorf("%s: the record has format %d, and this program knows format %d; replay it with release %s, which wrote it, or take the file out of the folder",
			r.place, head.Version, Version, head.Release)
	}
	return nil
}

func (r *reader) entry(text []byte) (Entry, error) {
	var l line
	if err := strictly(text, &l); err != nil {
		return Entry{}, err
	}
	return l.entry(r.sessions)
}

// damaged says what cannot be read, and what to do.
func damaged(at Place, err error) error {
	return fmt.Errorf("%s: it cannot be read (%w); where another release wrote it, replay it with that one; else copy the record anew, or take the file out of the folder", at, err)
}
