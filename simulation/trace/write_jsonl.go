package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strconv"
)

// WriteJSONL writes a trace as JSON lines, from which it can be read without loss.
func (t *Trace) WriteJSONL(w io.Writer) error {
	out := bufio.NewWriterSize(w, readAhead)
	head, err := compact(jsonHead{Version: jsonlVersion, Source: t.Source, Repairs: t.Repairs})
	if err != nil {
		return err
	}
	_, _ = out.Write(append(head, '\n')) // the error stays until Flush
	tails := map[*Shape][]byte{}
	var line []byte
	for i := range t.Jobs {
		j := &t.Jobs[i]
		tail, known := tails[j.Shape]
		if !known {
			if tail, err = compact(j.Shape.json()); err != nil {
				return err
			}
			tail = append(tail[1:], '\n') // without its {
			tails[j.Shape] = tail
		}
		if line, err = j.appendTimes(line[:0]); err != nil {
			return err
		}
		_, _ = out.Write(line)
		_, _ = out.Write(tail)
	}
	return out.Flush()
}

// compact answers a value as JSON that escapes no more than it must.
func compact(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(out.Bytes()), err
}

// appendTimes appends the beginning of a line.
func (j *Job) appendTimes(line []byte) ([]byte, error) {
	line = strconv.AppendInt(append(line, `{"id":`...), j.ID, 10)
	if j.Name != "" {
		label, err := compact(j.Name)
		if err != nil {
			return nil, err
		}
		line = append(append(line, `,"label":`...), label...)
	}
	line = strconv.AppendInt(append(line, `,"submit_ms":`...), int64(j.Submit), 10)
	line = strconv.AppendInt(append(line, `,"run_ms":`...), int64(j.Run), 10)
	if j.Limit != 0 {
		line = strconv.AppendInt(append(line, `,"limit_ms":`...), int64(j.Limit), 10)
	}
	if j.Waited != -1 {
		line = strconv.AppendInt(append(line, `,"waited_ms":`...), int64(j.Waited), 10)
	}
	if j.TokensFor != 0 {
		line = strconv.AppendInt(append(line, `,"tokens_for_ms":`...), int64(j.TokensFor), 10)
	}
	return append(line, ','), nil
}
