package trace

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	readAhead   = 1 << 20
	longestLine = 16 << 20
)

// lines reads a text line by line, without the ends of lines. What it answers is
// valid until it is asked again.
type lines struct {
	in *bufio.Reader
	// number is that of the last line, from 1.
	number int64
	long   []byte
	err    error
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func newLines(in *bufio.Reader) *lines {
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && bytes.Equal(mark, byteOrderMark) {
		_, _ = in.Discard(len(mark))
	}
	return &lines{in: in}
}

// next answers the next line, and false at the end. Of a line that is too long,
// the beginning is answered.
func (l *lines) next() ([]byte, bool) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.rest(line)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
		return nil, false
	}
	if err != nil && len(line) == 0 {
		return nil, false
	}
	l.number++
	return bytes.TrimRight(line, "\r\n"), true
}

// rest answers a line of which the beginning filled the buffer.
func (l *lines) rest(line []byte) ([]byte, error) {
	l.long = append(l.long[:0], line...)
	for {
		more, err := l.in.ReadSlice('\n')
		if room := longestLine - len(l.long); room > 0 {
			l.long = append(l.long, more[:min(len(more), room)]...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, err
		}
	}
}
