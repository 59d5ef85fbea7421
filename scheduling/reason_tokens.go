package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
)

// lacksTokens explains a job whose tokens no one can lend.
func (s *session) lacksTokens(c *class, choice int) verdict {
	shares := s.shares[choice]
	if !slices.ContainsFunc(shares, func(sh share) bool { return sh.lacking > 0 }) {
		return s.behindTokens(shares)
	}
	v := verdict{code: WaitTokens, change: "running jobs must give tokens back"}
	helps := false // more demand would
	for i := range shares {
		if sh := &shares[i]; sh.lacking > 0 {
			if v.resource == "" {
				v.resource = sh.pool.resource.Name
			}
			if helps = helps || len(sh.pool.sources) > 0; !s.words {
				continue
			}
			v.why = joined("; ", v.why, fmt.Sprintf("%s, %d coming%s", sh.whatIsFree(), sh.coming, s.borrowText(c, sh)))
			v.change = joined(", or ", v.change, s.remedy(sh.pool))
		}
	}
	if len(c.choices) > 1 && s.words {
		v.why += "; nor can another of its alternatives be had"
	}
	if c.pass.quiet && helps {
		return s.belowThreshold(c, v)
	}
	if len(c.templates.list) > 0 && s.words {
		v.why += "; without them, no host is kept or made for it"
	}
	return v
}

// remedy says what would let more of a pool be borrowed.
func (s *session) remedy(p *pool) string {
	e := p.resource.Elastic
	switch {
	case e == nil:
		return ""
	case p.limited():
		return fmt.Sprintf("max_borrowed of %s be raised", p.resource.Name)
	}
	again := cluster.Time(0)
	for _, lender := range e.Lenders {
		if offer, _ := cluster.FindOffer(s.e.offers, lender, p.resource.Name); offer.BackoffUntil > s.now && (again == 0 || offer.BackoffUntil < again) {
			again = offer.BackoffUntil
		}
	}
	if again > 0 {
		return "a lender must have more, which is asked again at " + again.Stamp()
	}
	return "a lender must have more"
}

// behindTokens explains a job that could have its tokens if none waited before it.
func (s *session) behindTokens(shares []share) verdict {
	i := slices.IndexFunc(shares, func(sh share) bool { return sh.pool.waiter != 0 })
	p := shares[i].pool
	if !s.words {
		return verdict{code: WaitBehind, resource: p.resource.Name}
	}
	return verdict{
		WaitBehind, fmt.Sprintf("needs %d %s; waits behind job %d, which waits for %s too", shares[i].need, p.resource.Name, p.waiter, p.resource.Name),
		fmt.Sprintf("job %d must start", p.waiter), p.resource.Name,
	}
}

// inTime says from whom and how soon what can be borrowed would come.
func (sh *share) inTime() string {
	text := ""
	for i, n := range sh.borrowed {
		if n > 0 {
			text += " from " + sh.pool.sources[i].text()
		}
	}
	return text
}

func (src *source) text() string {
	if src.offer.Latency == 0 {
		return src.offer.Provider
	}
	return fmt.Sprintf("%s in %s", src.offer.Provider, src.offer.Latency)
}

// whatIsFree says what a job needs and what there is of it.
func (sh *share) whatIsFree() string {
	text := fmt.Sprintf("needs %d %s; %d free", sh.need, sh.pool.resource.Name, max(sh.free, 0))
	switch {
	case sh.free < 0:
		text += fmt.Sprintf(" and %d too few for what is in use and kept back", -sh.free)
	case sh.reserved && sh.free < sh.need:
		text += ", the rest reserved for earlier jobs"
	}
	return text
}

// borrowText says what jobs of a class could borrow, and why not more.
func (s *session) borrowText(c *class, sh *share) string {
	if c.pass.quiet {
		return ""
	}
	return fmt.Sprintf(", %d can be borrowed%s%s", sh.fromHeadroom, sh.inTime(), sh.pool.whyNoMore(s.now))
}

// whyNoMore says what keeps the pool from borrowing more.
func (p *pool) whyNoMore(now cluster.Time) string {
	e := p.resource.Elastic
	switch {
	case e == nil:
		return " (the resource is not elastic)"
	case p.limited():
		return fmt.Sprintf(" (max borrowed is %d)", e.MaxBorrowed)
	}
	texts := make([]string, 0, len(p.lenders))
	for i := range p.lenders {
		texts = append(texts, p.lenders[i].noMore(now))
	}
	return fmt.Sprintf(" (%s)", strings.Join(texts, "; "))
}

// tokenOutcome is how the tokens of a job are had, in words and as a code; no
// code means that they are free.
type tokenOutcome struct {
	numbers []int64
	code    Code
	why     string
	change  string
	// resource is what is to be borrowed, or requested and coming.
	resource string
	held     []heldUnits // what is free
	awaits   []string    // what is not
}

// noteTokens records how the job that was just admitted has its tokens. Most
// jobs have them like the one before, which costs no words.
func (s *session) noteTokens(c *class, choice int) {
	n := append(s.numbers[:0], int64(choice))
	shares := s.shares[choice]
	for i := range shares {
		sh := &shares[i]
		n = append(n, sh.free, sh.coming, int64(boolCompare(sh.reserved, true)))
		n = append(n, sh.borrowed...)
	}
	s.numbers = n
	if last := len(c.pass.tokens) - 1; last >= 0 && slices.Equal(s.outcomes[c.pass.tokens[last].outcome].numbers, n) {
		c.pass.tokens[last].count++
		return
	}
	o := tokenOutcome{numbers: slices.Clone(n)}
	o.find(shares)
	if s.words {
		o.describe(shares, c.choices[choice])
	}
	s.outcomes = append(s.outcomes, o)
	c.pass.tokens = append(c.pass.tokens, tokenSpan{count: 1, outcome: int32(len(s.outcomes) - 1)})
}

// find finds the code.
func (o *tokenOutcome) find(shares []share) {
	for i := range shares {
		sh := &shares[i]
		if sh.coming > 0 && o.code == "" {
			o.code, o.resource = WaitComing, sh.pool.resource.Name
		}
		if sh.fromHeadroom > 0 && o.code != WaitBorrow {
			o.code, o.resource = WaitBorrow, sh.pool.resource.Name
		}
	}
}

// describe says it in words, and finds what is here of the shares and what is not.
func (o *tokenOutcome) describe(shares []share, needs []tokenNeed) {
	var parts, changes []string
	for i := range shares {
		sh := &shares[i]
		text := sh.whatIsFree()
		if sh.free > 0 {
			o.held = append(o.held, heldUnits{int64(needs[i].pool), sh.free})
		}
		if sh.coming > 0 {
			o.awaits = append(o.awaits, sh.pool.awaitsComing())
			text += fmt.Sprintf(", %d requested and coming", sh.coming)
			changes = append(changes, fmt.Sprintf("%d %s must arrive", sh.coming, sh.pool.resource.Name))
		}
		for j, n := range sh.borrowed {
			if n > 0 {
				text += fmt.Sprintf(", %d to be borrowed from %s", n, sh.pool.sources[j].text())
				changes = append(changes, fmt.Sprintf("%s must grant %d %s", sh.pool.sources[j].offer.Provider, n, sh.pool.resource.Name))
				o.awaits = append(o.awaits, sh.pool.resource.Name+" to be borrowed from "+sh.pool.sources[j].text())
			}
		}
		parts = append(parts, text)
	}
	o.why, o.change = strings.Join(parts, "; "), strings.Join(changes, ", ")
}
