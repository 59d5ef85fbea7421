package workflows

import (
	"regexp"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
)

// escaped is a sign that Markdown takes as it is.
var escaped = regexp.MustCompile(`\\.`)

// What others say must not make a link, a picture, a table or HTML of Temporal's pages.
func TestDetailsShowWhatOthersSayAsItIs(t *testing.T) {
	const evil = "x\n\n# big\n![p](http://x/p.png) <img src=x> | a | **b** \x1b[31m\u202e http://x"
	deal := Dealing{Trouble: evil, Tries: 1}
	loan := Loan{Request: cluster.LoanRequest{ID: evil, Reason: evil, Provider: evil, Resource: evil}, Row: cluster.Loan{Why: evil + "."}, Dealing: deal}
	host := Host{
		Request: cluster.HostRequest{ID: evil, Reason: evil, Template: evil, Provider: evil}, Dealing: deal,
		Row: cluster.ElasticHost{Instance: evil, Name: evil, Why: evil + ".", Drain: &cluster.Drain{By: evil, Why: evil}, Keep: &cluster.Keep{By: evil, Why: evil}},
	}
	provider := Provider{Name: evil, Trouble: evil, Offers: []cluster.Offer{{Resource: evil}}}
	provider.Hosts.Templates = []cluster.Template{{Name: evil}}
	for name, summary := range map[string]Summary{"loan": loan.summary(), "host": host.summary(), "provider": provider.summary()} {
		for _, line := range summary.Details {
			if strings.ContainsAny(line, "\n\x1b\u202e") {
				t.Errorf("%s: %q is not one plain line", name, line)
			}
			meant := escaped.ReplaceAllString(line, "")
			for _, sign := range []string{"!", "[", "]", "<", "//", " | a | ", "**b", "#"} {
				if strings.Contains(meant, sign) {
					t.Errorf("%s: %q has %s", name, line, sign)
				}
			}
		}
	}
}
