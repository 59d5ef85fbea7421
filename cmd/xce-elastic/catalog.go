package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// templatesView is what there is of templates, and what limits them.
type templatesView struct {
	Now       cluster.Time         `json:"now"`
	Halt      string               `json:"halt,omitempty"`
	Templates []api.TemplateStatus `json:"templates"`
	Quotas    []cluster.Quota      `json:"quotas"`
	Limits    []cluster.Quota      `json:"limits"`
}

func newTemplates() *cobra.Command {
	cmd := &cobra.Command{
		Use: "templates", Short: "Show which hosts providers can make now", Args: cobra.NoArgs,
		Long: "Show which hosts providers can make now, what there is of each template, what limits them, and what was learned of\n" +
			"them: refusals, and hosts that joined with less than their template says.",
	}
	return ofCatalog(cmd, func(v api.CatalogView) (any, func(*table)) {
		view := templatesView{Now: v.Now, Halt: v.Halt, Templates: v.Templates, Quotas: v.Quotas, Limits: v.Limits}
		return view, func(t *table) { templateTables(t, v) }
	})
}

func newCatalog() *cobra.Command {
	cmd := &cobra.Command{
		Use: "catalog", Short: "Show what providers can give now", Args: cobra.NoArgs,
		Long: "Show what providers can give now: templates of hosts with what limits them, and offers of tokens.",
	}
	return ofCatalog(cmd, func(v api.CatalogView) (any, func(*table)) {
		return v, func(t *table) {
			templateTables(t, v)
			t.row()
			offerTable(t, v.Offers)
		}
	})
}

// ofCatalog makes a command print the catalog, or a part of it.
func ofCatalog(cmd *cobra.Command, part func(api.CatalogView) (any, func(*table))) *cobra.Command {
	format := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := loadAndConnect(cmd)
		if err != nil {
			return err
		}
		v, err := c.Catalog(cmd.Context())
		if err != nil {
			return err
		}
		value, show := part(v)
		return format.print(cmd, value, show)
	}
	return cmd
}

func templateTables(t *table, v api.CatalogView) {
	haltRow(t, v.Halt)
	if len(v.Templates) == 0 {
		t.row("no provider makes hosts")
	} else {
		t.row("TEMPLATE", "PROVIDER", "CPUS", "MB", "ALSO", "HEADROOM", "PRICE/H", "MINIMUM HOLD", "BILLING STEP", "LATENCY", "REQUESTED", "EXPECTED", "JOINED", "LEAVING", "PUBLISHED")
		for _, s := range v.Templates {
			t.row(s.Name, s.Provider, s.CPUs, s.MemoryMB, dash(alsoHas(s.Capacity)), s.Headroom, s.Price, s.MinimumHold, s.BillingStep, s.Latency,
				s.Requested, s.Expected, s.Joined, s.Leaving, stamp(s.Published))
		}
		learnedRows(t, v)
	}
	if len(v.Quotas)+len(v.Limits) == 0 {
		return
	}
	t.row()
	t.row("LIMIT", "COUNTS", "USED", "OF", "SET BY")
	for _, q := range v.Limits {
		t.row(q.Name, q.Counts, q.Used, q.Limit, "the cluster")
	}
	for _, q := range v.Quotas {
		provider, _, _ := strings.Cut(q.Name, ".")
		t.row(q.Name, q.Counts, q.Used, q.Limit, provider)
	}
}

// alsoHas shows what a host has beside cpus and memory.
func alsoHas(c cluster.Capacity) string {
	parts := c.FeatureNames()
	if len(c.Countables) > 0 {
		parts = append([]string{countList(c.Countables)}, parts...)
	}
	return strings.Join(parts, ",")
}

// learnedRows say what was learned of templates.
func learnedRows(t *table, v api.CatalogView) {
	var sentences []string
	for _, s := range v.Templates {
		if s.Refusals > 0 {
			sentences = append(sentences, fmt.Sprintf("%s: refused or not joined %d times in a row; %s", s.Name, s.Refusals, leftAlone(s.BackoffUntil, v.Now)))
		}
		if s.Misses > 0 {
			sentences = append(sentences, missed(s.Template))
		}
	}
	if len(sentences) > 0 {
		t.row()
	}
	for _, s := range sentences {
		t.sentence(wrapped, s)
	}
}

func leftAlone(until, now cluster.Time) string {
	if until <= now {
		return "it may be asked again"
	}
	return "let be until " + stamp(until)
}

// missed tells of hosts that joined with less than their template says.
func missed(t cluster.Template) string {
	text := fmt.Sprintf("%s: %d hosts in a row joined with less than it says", t.Name, t.Misses)
	if t.Misses == 1 {
		text = fmt.Sprintf("%s: the last host joined with less than it says", t.Name)
	}
	if t.Delivered != nil {
		text += ": " + sizeOf(*t.Delivered)
	}
	if believed := t.Believed(); believed.Covers(t.Capacity) {
		return text + "; it is believed still"
	}
	return text + "; " + sizeOf(t.Believed()) + " is believed"
}

// sizeOf says in words what a host has.
func sizeOf(c cluster.Capacity) string {
	text := fmt.Sprintf("%d cpus and %d MB", c.CPUs, c.MemoryMB)
	if also := alsoHas(c); also != "" {
		text += " with " + also
	}
	return text
}

func offerTable(t *table, offers []cluster.Offer) {
	if len(offers) == 0 {
		t.row("no provider lends tokens")
		return
	}
	t.row("LENDER", "RESOURCE", "HEADROOM", "PRICE/H", "MINIMUM HOLD", "BILLING STEP", "PUBLISHED", "REFUSALS", "LEFT ALONE UNTIL")
	for _, o := range offers {
		t.row(o.Provider, o.Resource, o.Headroom, o.Price, o.MinimumHold, o.BillingStep, stamp(o.Published), o.Refusals, stamp(o.BackoffUntil))
	}
}
