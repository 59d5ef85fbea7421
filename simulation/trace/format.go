package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Format is how a file is written.
type Format string

// Formats. Sacct is what `sacct -P` prints; GridEngine is the accounting file of
// Sun's, Univa's and others' Grid Engine; JSONL is our own.
const (
	SWF        Format = "swf"
	Sacct      Format = "sacct"
	LSF        Format = "lsf"
	GridEngine Format = "sge"
	PBS        Format = "pbs"
	JSONL      Format = "jsonl"
)

// Formats are all formats that can be read.
var Formats = []Format{SWF, Sacct, LSF, GridEngine, PBS, JSONL}

// FormatOf answers the format of that name; "uge" is one for Grid Engine too.
func FormatOf(name string) (Format, error) {
	if name == "uge" {
		return GridEngine, nil
	}
	names := make([]string, len(Formats))
	for i, f := range Formats {
		if string(f) == name {
			return f, nil
		}
		names[i] = string(f)
	}
	return "", fmt.Errorf("there is no format %q; use one of %s", name, strings.Join(names, ", "))
}

// readAs reads a text in a format.
func (b *builder) readAs(f Format, text *lines) error {
	switch f {
	case SWF:
		return b.readSWF(text)
	case Sacct:
		return b.readSacct(text)
	case LSF:
		return b.readLSF(text)
	case GridEngine:
		return b.readGridEngine(text)
	case PBS:
		return b.readPBS(text)
	case JSONL:
		return b.readJSONL(text)
	}
	_, err := FormatOf(string(f))
	return err
}

var (
	pbsLine = regexp.MustCompile(`^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];`)
	lsfLine = regexp.MustCompile(`^"[A-Z_0-9]+" "[0-9.]+" \d`)
	swfLine = regexp.MustCompile(`^[-+0-9.\s]+$`)
)

// detect finds out how a text is written, by its first line that says so.
func detect(in *bufio.Reader, name string) (Format, error) {
	begin, err := in.Peek(readAhead)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s: %w; the file is damaged or cut off", name, err)
	}
	n := 0
	for text := range bytes.Lines(bytes.TrimPrefix(begin, byteOrderMark)) {
		n++
		if f := formatOfLine(bytes.TrimSpace(text)); f != "" {
			return f, nil
		}
		if n == 1000 {
			break
		}
	}
	if len(bytes.TrimSpace(begin)) == 0 {
		return "", fmt.Errorf("%s: the file is empty; name one that has jobs", name)
	}
	return "", fmt.Errorf("%s:1: no format is like this: %s; name the format with --format, one of swf, sacct, lsf, sge, pbs and jsonl", name, firstLine(begin))
}

func firstLine(text []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return strings.TrimSpace(quoted(line))
}

// formatOfLine answers "" for a line that may be of several formats.
func formatOfLine(line []byte) Format {
	switch {
	case len(line) == 0 || line[0] == '#':
		return ""
	case line[0] == '{':
		return JSONL
	case line[0] == ';':
		return SWF
	case lsfLine.Match(line):
		return LSF
	case pbsLine.Match(line):
		return PBS
	case isSacctHeader(line) || bytes.Count(line, []byte("|")) >= headerless-2:
		return Sacct
	case bytes.Count(line, []byte(":")) >= geFields-1:
		return GridEngine
	case swfLine.Match(line) && len(bytes.Fields(line)) >= swfLeast:
		return SWF
	}
	return ""
}
