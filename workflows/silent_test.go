package workflows

import (
	"testing"

	"xce.internal/elastic/activities"
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/providers"
)

// deafEnv is a provider that answers, or does not, and a memory of what was published.
type deafEnv struct {
	ProviderEnv
	answers   bool
	published []int64 // headroom
}

func (e *deafEnv) Now() cluster.Time                  { return 1 }
func (e *deafEnv) View([]string) (v api.ProviderView) { return v }
func (e *deafEnv) Publish(c api.Catalog)              { e.published = append(e.published, c.Offers[0].Headroom) }

func (e *deafEnv) Survey(activities.SurveyIn) (s activities.Survey) {
	s.Describe.Status, s.List.Status = providers.StatusUnknown, providers.StatusUnknown
	if e.answers {
		s.Describe.Status = providers.StatusOK
		s.Offers = []cluster.Offer{{Provider: "pool-a", Resource: "vcs", Headroom: 8}}
	}
	return s
}

func TestAProviderThatKeepsSilentLendsNothingMore(t *testing.T) {
	env := &deafEnv{answers: true}
	p := &Provider{Name: "pool-a", Weights: map[string]int64{"vcs": 1}}
	survey := func(answers bool, want ...int64) {
		t.Helper()
		env.answers, env.published = answers, nil
		p.survey(env)
		if len(env.published) != len(want) || len(want) > 0 && env.published[0] != want[0] {
			t.Fatalf("after %d silent surveys the headroom published is %v, want %v", p.Silent, env.published, want)
		}
	}
	survey(true, 8)
	survey(false)
	survey(false)
	survey(false, 0) // the third in a row
	survey(false)
	survey(true, 8)
	survey(false)
	if p.Silent != 1 || p.Trouble == "" {
		t.Errorf("after an answer and one silence: silent %d, trouble %q", p.Silent, p.Trouble)
	}
}
