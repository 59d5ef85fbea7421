package check

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"xce.internal/elastic/cluster/plain"
)

// Verdict is what one check found.
type Verdict string

// The verdicts. Only WRONG fails a script; a warning is what the contract allows and an operator will regret.
const (
	OK      Verdict = "ok"
	Wrong   Verdict = "WRONG"
	Warning Verdict = "warning"
	Skipped Verdict = "skipped"
)

// Row is one check: what was expected, what was found, the script's exact answer, and how to mend it.
type Row struct {
	Check    string  `json:"check"`
	Verdict  Verdict `json:"verdict"`
	Expected string  `json:"expected,omitempty"`
	Found    string  `json:"found,omitempty"`
	Answer   string  `json:"answer,omitempty"`
	Mend     string  `json:"mend,omitempty"`
	Elapsed  int64   `json:"elapsed_ms"` // of the slowest call
}

// Report is all that a run found.
type Report struct {
	Provider string `json:"provider"`
	Script   string `json:"script"`
	Rows     []Row  `json:"rows"`
}

// Failed says whether the script breaks the contract.
func (r Report) Failed() bool {
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Verdict == Wrong })
}

// Print writes the row for people; what is ok needs one line only.
func (row Row) Print(out io.Writer) {
	fmt.Fprintf(out, "%-8s %-48s %7d ms\n", row.Verdict, row.Check, row.Elapsed)
	if row.Verdict == OK {
		return
	}
	for _, line := range [][2]string{
		{"expected", row.Expected}, {"found", row.Found}, {"answer", visible(row.Answer)}, {"mend", row.Mend},
	} {
		if line[1] != "" {
			fmt.Fprintf(out, "         %-9s %s\n", line[0]+":", plain.Line(line[1]))
		}
	}
}

// visible keeps an answer exact and on one line, and lets no character of it steer the terminal.
func visible(answer string) string {
	answer = strings.TrimRight(answer, "\n")
	if strings.ContainsFunc(answer, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(answer)
	}
	return answer
}

func good() Row { return Row{Verdict: OK} }

func skip(why string) Row { return Row{Verdict: Skipped, Found: why} }

func (row Row) mend(how string) Row {
	row.Mend = how
	return row
}
