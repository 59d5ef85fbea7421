package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"xce.internal/elastic/simulation"
)

// The page is one file: style and script stand in it, and it loads nothing.
var (
	//go:embed page/report.html
	reportText string
	//go:embed page/frontier.html
	frontierText string
	//go:embed page/parts.html
	partsText string
	//go:embed page/page.css
	styleText string
	//go:embed page/charts.js
	scriptText string

	reportPage   = pageOf("report", reportText)
	frontierPage = pageOf("frontier", frontierText)
)

func pageOf(name, text string) *template.Template {
	return template.Must(template.Must(template.New(name).Parse(text)).Parse(partsText))
}

// Options are choices about a page. The zero value is fine.
type Options struct {
	// Title heads the page; empty means one from the cluster's name.
	Title string
	// Rows is how many loans and hosts are listed at most; 0 means 300.
	Rows int
}

// mostRows is how many loans and hosts are listed where nothing else is said.
const mostRows = 300

// page is what the template shows.
type page struct {
	Title, Source, Span, Little string
	Seed                        uint64
	Sessions                    int64
	Stopped, Holds              bool
	Cards                       []card
	Charts                      []*chart
	Sheets                      []sheet
	Stories                     []story
	Style                       template.CSS
	Script, Data                template.JS
}

// HTML writes the report as one page that needs nothing else.
func HTML(w io.Writer, r *simulation.Result, o Options) error {
	s := Summarize(r)
	return s.HTML(w, r, o)
}

// HTML writes the report of the result that the summary is of.
func (s *Summary) HTML(w io.Writer, r *simulation.Result, o Options) error {
	p, err := s.page(r, o)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := reportPage.Execute(out, p); err != nil {
		return err
	}
	return out.Flush()
}

func (s *Summary) page(r *simulation.Result, o Options) (page, error) {
	if o.Rows <= 0 {
		o.Rows = mostRows
	}
	p := page{
		Title: o.Title, Source: s.Source, Span: span(s), Seed: s.Seed, Sessions: s.Sessions, Stopped: s.Stopped,
		Little: s.Little.String(), Holds: s.Little.Holds, Cards: cards(s), Charts: charts(r), Sheets: sheets(r, s, o.Rows), Stories: stories(r),
		Style: template.CSS(styleText), Script: template.JS(scriptText),
	}
	if p.Title == "" {
		p.Title = title(s)
	}
	data, err := chartData(p.Charts)
	p.Data = template.JS(data)
	return p, err
}

func title(s *Summary) string {
	text := "Simulation of " + named(s.Cluster, "a cluster")
	if s.Label != "" {
		text += fmt.Sprintf(" (%s)", s.Label)
	}
	return text
}

// Extremes are the charts' means and largest values, for who cannot see them.
func (p page) Extremes() sheet {
	t := sheet{Title: "Charts in numbers", Head: []string{"chart", "line", "mean", "largest"}, Texts: 2}
	for _, c := range p.Charts {
		t.Rows = append(t.Rows, c.rows...)
	}
	return t
}
