package report

import (
	"io"
	"strings"
	"unicode/utf8"

	"xce.internal/elastic/cluster/plain"
)

// columns is a text of aligned tables and paragraphs for a terminal of some width; 0 means that there is
// no limit.
type columns struct {
	text  strings.Builder
	width int
	rows  [][]string
}

// leastName is how much of a name is shown however narrow the terminal is.
const leastName = 8

// row adds a row; the first cell is a name, which is cut where the row would be too wide, and the others
// are numbers.
func (c *columns) row(cells ...string) {
	for i := range cells {
		cells[i] = plain.Line(cells[i])
	}
	c.rows = append(c.rows, cells)
}

// end puts the rows out, and an empty line.
func (c *columns) end() {
	var widths []int
	for _, row := range c.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	rest := 0
	for _, w := range widths[min(1, len(widths)):] {
		rest += 2 + w
	}
	if c.width > 0 && len(widths) > 0 {
		widths[0] = min(widths[0], max(c.width-rest, leastName))
	}
	for _, row := range c.rows {
		c.line(row, widths)
	}
	if len(c.rows) > 0 {
		c.text.WriteByte('\n')
	}
	c.rows = nil
}

func (c *columns) line(row []string, widths []int) {
	var line strings.Builder
	for i, cell := range row {
		if i == 0 {
			cell = clip(cell, widths[0])
		}
		gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i == 0 {
			line.WriteString(cell + gap)
		} else {
			line.WriteString("  " + gap + cell)
		}
	}
	c.text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// paragraph adds text that is wrapped at the terminal's width; lines after the first are indented.
func (c *columns) paragraph(text string) {
	width := c.width
	if width == 0 {
		width = 100
	}
	line, empty := "", true
	for word := range strings.FieldsSeq(plain.Line(text)) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			c.text.WriteString(line + "\n")
			line, empty = "  ", true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	c.text.WriteString(line + "\n")
}

func (c *columns) gap() { c.text.WriteByte('\n') }

func (c *columns) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, strings.TrimRight(c.text.String(), "\n")+"\n")
	return err
}

// clip cuts a text that is longer than so many signs.
func clip(text string, width int) string {
	signs := []rune(text)
	if len(signs) <= width {
		return text
	}
	return string(signs[:max(width-3, 0)]) + "..."
}
