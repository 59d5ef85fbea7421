package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"xce.internal/elastic/cluster"
)

// Options say where a record is written, and of whom.
type Options struct {
	Folder, Cluster, Release string
	// Most is how many bytes all files may have together; the oldest are removed. 0 means DefaultMost.
	Most int64
	Now  func() cluster.Time
	Log  *slog.Logger
}

// DefaultMost is how large a record may grow where nothing else is said.
const DefaultMost = 1 << 30

const (
	// mostWaiting is how many decisions may wait to be written, and mostRows how many jobs and hosts the sessions among
	// them may have together, unless it is one session.
	mostWaiting = 10_000
	mostRows    = 100_000
	// flushEvery is how much a controller that is killed may lose of its record.
	flushEvery = time.Second
	// tryAgainAfter is how long a record is left alone that cannot be written.
	tryAgainAfter = time.Minute
)

// Writer writes a record, on a goroutine of its own.
type Writer struct {
	Options
	entries chan Entry
	// rows counts the jobs and hosts of the sessions in entries, and missed the decisions that no place was left for.
	rows, missed atomic.Int64

	stop   func()
	stopAt chan struct{}
	ended  chan struct{}

	// What follows is the goroutine's.
	discretion discretion
	file       *file
	last       sessions
	lastResult []byte
	dirty      bool
	failed     bool
	tryAgain   time.Time
}

// NewWriter begins to write a record. Where that cannot be done, it is logged, once, and tried again later.
func NewWriter(o Options) *Writer {
	if o.Most == 0 {
		o.Most = DefaultMost
	}
	w := &Writer{
		Options: o, entries: make(chan Entry, mostWaiting), stopAt: make(chan struct{}), ended: make(chan struct{}), discretion: newDiscretion(),
	}
	w.stop = sync.OnceFunc(func() { close(w.stopAt) })
	go w.run()
	return w
}

// Note takes down a decision. It does not wait: what there is no place for is counted as missed.
func (w *Writer) Note(e Entry) {
	rows := e.rows()
	if waiting := w.rows.Add(rows); waiting > mostRows && waiting > rows {
		w.miss(rows)
		return
	}
	select {
	case w.entries <- e:
	default:
		w.miss(rows)
	}
}

func (w *Writer) miss(rows int64) {
	w.rows.Add(-rows)
	w.missed.Add(1)
}

// rows answers how many jobs and hosts a session judged.
func (e Entry) rows() int64 {
	if e.Session == nil {
		return 0
	}
	in := e.Session.Input
	return int64(len(in.Jobs) + len(in.Running) + len(in.Hosts) + len(in.Expected))
}

// Close writes what is left, and ends the record.
func (w *Writer) Close() {
	w.stop()
	<-w.ended
}

func (w *Writer) run() {
	defer close(w.ended)
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	w.ready() // so that what is wrong is known at once
	for {
		select {
		case e := <-w.entries:
			w.take(e)
		case <-flush.C:
			w.flush()
		case <-w.stopAt:
			w.finish()
			return
		}
	}
}

// finish writes what waits still.
func (w *Writer) finish() {
	for {
		select {
		case e := <-w.entries:
			w.take(e)
		default:
			if w.file != nil {
				w.tellMissed()
			}
			if w.file != nil {
				w.check(w.file.close())
			}
			return
		}
	}
}

// take writes an entry, or counts it as missed.
func (w *Writer) take(e Entry) {
	w.rows.Add(-e.rows())
	if !w.ready() {
		w.missed.Add(1)
		return
	}
	w.tellMissed()
	if w.file != nil {
		w.check(w.write(e))
	}
}

// tellMissed writes how many decisions were missed.
func (w *Writer) tellMissed() {
	if missed := w.missed.Swap(0); missed > 0 {
		w.check(w.put(line{At: w.Now(), Missed: missed}))
	}
}

// ready tells whether there is a file to write to.
func (w *Writer) ready() bool {
	if w.file != nil && w.file.size < w.Most/8 && w.file.size < mostFile {
		return true
	}
	if w.failed && time.Now().Before(w.tryAgain) {
		return false
	}
	w.check(w.next())
	return w.file != nil
}

// next ends the file and begins another.
func (w *Writer) next() error {
	if w.file != nil {
		old := w.file
		w.file = nil
		if err := old.close(); err != nil {
			return err
		}
	}
	f, err := create(w.Folder)
	if err != nil {
		return err
	}
	w.file, w.last = f, newSessions()
	if err := w.put(Head{Format: Format, Version: Version, Release: w.Release, Cluster: w.Cluster, Begun: w.Now()}); err != nil {
		return err
	}
	if w.failed {
		w.failed = false
		w.Log.Info("decisions are recorded again", "file", f.path)
	}
	return prune(w.Folder, w.Most-w.Most/8)
}

func (w *Writer) write(e Entry) (err error) {
	l := line{At: e.At}
	switch {
	case e.Session != nil:
		return w.session(e)
	case e.Loan != nil:
		l.Loan, err = w.discretion.bare(e.Loan)
	case e.Host != nil:
		l.Host, err = w.discretion.bare(e.Host)
	case e.Fact != nil:
		l.Fact, err = w.discretion.bare(e.Fact)
	case e.Lend != nil:
		l.Lend, err = w.discretion.bare(e.Lend)
	}
	if err != nil {
		return fmt.Errorf("encode a decision: %w", err)
	}
	return w.put(l)
}

// session writes a session, unless it started nothing and came to the same as the last one.
func (w *Writer) session(e Entry) error {
	text, err := json.Marshal(e.Session.Result)
	if err != nil {
		return fmt.Errorf("encode a session: %w", err)
	}
	if len(e.Session.Result.Starts) == 0 && bytes.Equal(text, w.lastResult) {
		return nil
	}
	result, err := documentOf(json.RawMessage(text))
	if err != nil {
		return fmt.Errorf("encode a session: %w", err)
	}
	s := *e.Session
	if s.Input, err = w.discretion.state(w.Cluster, s.Input); err != nil {
		return err
	}
	changes, now, err := w.last.write(s, result)
	if err != nil {
		return err
	}
	w.last, w.lastResult = now, text
	return w.put(line{At: e.At, Session: changes})
}

// put writes a line.
func (w *Writer) put(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a decision: %w", err)
	}
	w.dirty = true
	return w.file.write(append(text, '\n'))
}

func (w *Writer) flush() {
	if w.file != nil && w.dirty {
		w.dirty = false
		w.check(w.file.flush())
	}
}

// check gives a file up that cannot be written.
func (w *Writer) check(err error) {
	if err == nil {
		return
	}
	if w.file != nil {
		err = errors.Join(err, w.file.close())
		if !w.file.kept { // else a full disk gets one more each time
			err = errors.Join(err, os.Remove(w.file.path))
		}
		w.file = nil
	}
	w.tryAgain = time.Now().Add(tryAgainAfter)
	if !w.failed {
		w.Log.Error("decisions are not recorded; the controller goes on without, and tries again every minute", "folder", w.Folder, "error", err)
	}
	w.failed = true
}

// file is one that is being written.
type file struct {
	path string
	to   writeCloser
	zip  *gzip.Writer
	size int64
	// kept tells that something of it is on the disk.
	kept bool
}

type writeCloser interface {
	Write([]byte) (int, error)
	Close() error
}

// Write counts what goes to the disk.
func (f *file) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.size += int64(n)
	return n, err
}

func (f *file) write(text []byte) error {
	_, err := f.zip.Write(text)
	return err
}

func (f *file) flush() error {
	err := f.zip.Flush()
	f.kept = f.kept || err == nil
	return err
}

func (f *file) close() error { return errors.Join(f.zip.Close(), f.to.Close()) }
