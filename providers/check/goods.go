package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/providers"
)

// goods is what the lending checks ask for: tokens of a resource, or hosts of a template.
type goods struct {
	kind       providers.Kind
	name       string // of the resource or template; empty where describe has none
	headroom   int64
	maxRequest int64 // 0 = headroom is the only limit
	maxOpen    int64
}

func tokens(offer providers.Offer) goods {
	return goods{
		kind: providers.KindTokens, name: offer.Resource, headroom: offer.Headroom,
		maxRequest: offer.MaxRequest, maxOpen: max(1, offer.MaxOpen),
	}
}

// hosts are asked for one by one, as each has a token of its own to join with.
func hosts(template providers.Template) goods {
	return goods{
		kind: providers.KindHosts, name: template.Template, headroom: template.Headroom,
		maxRequest: 1, maxOpen: template.Headroom,
	}
}

// offered is all that describe has of a kind.
func (s *session) offered(kind providers.Kind) (all []goods) {
	if kind == providers.KindTokens {
		for _, offer := range s.description.Offers {
			all = append(all, tokens(offer))
		}
		return all
	}
	templates := slices.Clone(s.description.Templates)
	slices.SortStableFunc(templates, func(a, b providers.Template) int { return cmp.Compare(a.Price, b.Price) })
	for _, template := range templates {
		all = append(all, hosts(template))
	}
	return all
}

// wanted picks what to ask for: the resource with the most headroom; the cheapest template that has
// headroom for two hosts, or else that with the most.
func (s *session) wanted(kind providers.Kind) goods {
	want := goods{kind: kind}
	for _, offered := range s.offered(kind) {
		if kind == providers.KindHosts && offered.headroom >= 2 {
			return offered
		}
		if want.name == "" || offered.headroom > want.headroom {
			want = offered
		}
	}
	return want
}

// requestOf asks for what is wanted, under a new id.
func (s *session) requestOf(units int64) providers.RequestIn {
	return s.want.request(s.newID(), units)
}

func (g goods) request(id string, units int64) providers.RequestIn {
	in := providers.RequestIn{RequestID: id, Units: units}
	if g.kind != providers.KindHosts {
		in.Resource = g.name
		return in
	}
	in.Template, in.Join = g.name, join(id)
	return in
}

// has tells whether a grant is of these goods.
func (g goods) has(grant providers.Grant) bool {
	if g.kind == providers.KindHosts {
		return grant.Template == g.name
	}
	return grant.Resource == g.name
}

// nothing says that there is nothing to ask for; nil where there is.
func (s *session) nothing() *Row {
	if s.want.name != "" {
		return nil
	}
	row := skip("describe offers no " + string(s.want.kind))
	return &row
}

// noLending says why a lending check cannot run; nil when it can.
func (s *session) noLending(units int64) *Row {
	if nothing := s.nothing(); nothing != nil {
		return nothing
	}
	var row Row
	switch {
	case s.leaking:
		row = skip("a grant did not come back, so nothing more is borrowed: mend that first")
	case s.want.headroom < units:
		row = skip(fmt.Sprintf("describe's headroom is %d and this needs %d: free some and check again", s.want.headroom, units))
		row.Verdict = Warning
	default:
		return nil
	}
	return &row
}

// notInOne says why these units cannot be asked for with one request; nil when they can.
func (s *session) notInOne(units int64) *Row {
	if s.want.maxRequest == 0 || s.want.maxRequest >= units {
		return s.noLending(units)
	}
	row := skip(fmt.Sprintf("describe's max_request is %d and this needs %d", s.want.maxRequest, units))
	if s.want.kind == providers.KindHosts {
		row = skip("hosts are asked for one by one")
	}
	return &row
}

// identify notes the hosts of a grant, and checks that they are all there, the same every time and no one
// else's.
func (s *session) identify(r reply, id string, units int64, instances []providers.Instance) Row {
	if s.want.kind == providers.KindHosts && int64(len(instances)) != units {
		return r.says(Wrong, "an instance for each host", fmt.Sprintf("%d for %d", len(instances), units)).
			mend("name the instances of a granted request wherever it is answered, also in status")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, instance := range instances {
		owner, known := s.hosts[instance.ID]
		if known && owner != id {
			return r.says(Wrong, "an instance that no other request had", fmt.Sprintf("%s, which %s had", instance.ID, owner)).
				mend("give each host an id that is never used again, also when the host is gone")
		}
		if !known && slices.Contains(s.identified, id) {
			return r.says(Wrong, "the same instances of "+id+" every time", "also "+instance.ID).
				mend("keep the instances with the request, and answer them every time")
		}
	}
	if len(instances) > 0 && !slices.Contains(s.identified, id) {
		s.identified = append(s.identified, id)
	}
	for _, instance := range instances {
		s.hosts[instance.ID] = id
	}
	return good()
}

// noSuchName is a name that no provider offers.
func (s *session) noSuchName() string {
	return "no-such-thing-" + strings.ToLower(strings.Trim(strings.TrimPrefix(s.prefix, "check"), "/"))
}
