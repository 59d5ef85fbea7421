package trace

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Options say how accounting files are read.
type Options struct {
	// Format is how the files are written; empty means that each file's own is found out.
	Format Format
	// Procs are the processors that there are: no job of an accounting file takes more. 0
	// means that any number will do.
	Procs int64
	// Zone is that of local times which name none; nil means UTC.
	Zone *time.Location
	// Calendar adds the time at which a log in the Standard Workload Format began
	// to its times, which otherwise count from then.
	Calendar bool
	// TokensForDuration makes jobs keep tokens only for as long as they asked, where
	// they did (LSF's rusage[lic=1:duration=5]); otherwise they keep them to their end.
	TokensForDuration bool
	// LSFMemory is the unit of memory that LSF's rusage[mem=...] names without one, as in
	// "KB" (what LSF_UNIT_FOR_LIMITS says); empty means MB.
	LSFMemory string
	// Names keeps the names and command lines of jobs. Most jobs differ in them, so
	// it takes much more memory, and nothing but a mapping needs them.
	Names bool
	// Stdin is read where a file is named "-"; nil means that there is no such file.
	Stdin io.Reader
	// Mapping says what jobs ask for that their records do not tell; nil means nothing.
	Mapping *Mapping
	// Strict refuses a trace in which anything would have to be mended, Refuse one
	// in which one of these rules would have to be used.
	Strict bool
	Refuse []string
}

// Read reads accounting files as one trace. What is wrong with records is mended
// and counted, or refused with its places.
func Read(files []string, o Options) (*Trace, error) {
	b, err := newBuilder(o)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if err := b.readFile(name); err != nil {
			return nil, err
		}
	}
	return b.trace()
}

// ReadFrom reads one text as a trace; the name stands for it in places.
func ReadFrom(r io.Reader, name string, o Options) (*Trace, error) {
	b, err := newBuilder(o)
	if err != nil {
		return nil, err
	}
	if err := b.read(r, name); err != nil {
		return nil, err
	}
	return b.trace()
}

func (b *builder) readFile(name string) error {
	if name == "-" && b.o.Stdin != nil {
		return b.read(b.o.Stdin, "standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("read trace: %s is a folder; name the files in it", name)
	}
	counted := &countedReader{in: f, size: info.Size()}
	b.left = counted.left
	defer func() { b.left = nil }()
	return b.read(counted, name)
}

// countedReader knows how much of a file has been read.
type countedReader struct {
	in         io.Reader
	done, size int64
	ahead      func() int // how much of what was read nobody has looked at
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.done += int64(n)
	return n, err
}

// left answers how many times as long as what was looked at the rest is.
func (c *countedReader) left() float64 {
	used := c.done
	if c.ahead != nil {
		used -= int64(c.ahead())
	}
	if used <= 0 || used >= c.size {
		return 0
	}
	return float64(c.size-used) / float64(used)
}

// read reads one text, which may be compressed.
func (b *builder) read(r io.Reader, name string) error {
	b.file, b.before = name, len(b.jobs)
	in := bufio.NewReaderSize(r, readAhead)
	if counted, is := r.(*countedReader); is {
		counted.ahead = in.Buffered
	}
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%s: %w; compress it anew with gzip", name, err)
		}
		in = bufio.NewReaderSize(z, readAhead)
	}
	format := b.o.Format
	if format == "" {
		var err error
		if format, err = detect(in, name); err != nil {
			return err
		}
	}
	b.sources = append(b.sources, fmt.Sprintf("%s (%s)", name, format))
	text := newLines(in)
	if err := b.readAs(format, text); err != nil {
		return err
	}
	if text.err != nil {
		return fmt.Errorf("%s:%d: %w; the file is damaged or cut off", name, text.number+1, text.err)
	}
	return nil
}

// lsfMemory is the unit of LSF's memory in bytes.
func (o *Options) lsfMemory() float64 {
	if factor := scale(strings.ToLower(o.LSFMemory)); factor > 0 {
		return factor
	}
	return 1 << 20
}
