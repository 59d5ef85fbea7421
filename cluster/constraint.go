package cluster

import (
	"fmt"
	"strings"
)

// Constraint is a condition over the features of a host: names joined by "&"
// (and), "|" (or), "!" (not) and parentheses; "&" binds closer than "|". A name
// is a feature such as avx512, or an attribute with its value such as site=z1.
// The zero Constraint holds everywhere.
type Constraint struct {
	holds func(has func(string) bool) bool
}

// Holds tells whether a host with the features that `has` knows may be used.
func (c Constraint) Holds(has func(feature string) bool) bool {
	return c.holds == nil || c.holds(has)
}

// holdsOn tells whether the constraint holds on what a host has.
func (c Constraint) holdsOn(has *Capacity) bool { return c.holds == nil || c.holds(has.Has) }

// ParseConstraint reads a constraint. Its error names the place (a column,
// from 1) of what it cannot read.
func ParseConstraint(text string) (Constraint, error) {
	p := constraintParser{text: text}
	if p.blank(); p.at == len(text) {
		return Constraint{}, nil
	}
	c, err := p.or(0)
	if err != nil {
		return Constraint{}, err
	}
	if p.blank(); p.at < len(text) {
		return Constraint{}, p.fault("an operator or the end")
	}
	return c, nil
}

// mostNested keeps what an input can make the parser's stack grow to.
const mostNested = 100

// constraintSigns end a feature's name.
const constraintSigns = " &|!()"

type constraintParser struct {
	text string
	at   int
}

func (p *constraintParser) fault(wanted string) error {
	if p.at >= len(p.text) {
		return fmt.Errorf("constraint %q ends where %s should follow", p.text, wanted)
	}
	return fmt.Errorf("constraint %q has %q at column %d, where %s should be", p.text, p.text[p.at], p.at+1, wanted)
}

func (p *constraintParser) blank() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// take takes the sign if it is the next.
func (p *constraintParser) take(sign byte) bool {
	p.blank()
	if p.at < len(p.text) && p.text[p.at] == sign {
		p.at++
		return true
	}
	return false
}

func (p *constraintParser) or(depth int) (Constraint, error) {
	left, err := p.and(depth)
	for err == nil && p.take('|') {
		var right Constraint
		right, err = p.and(depth)
		a, b := left, right
		left = Constraint{func(has func(string) bool) bool { return a.holds(has) || b.holds(has) }}
	}
	return left, err
}

func (p *constraintParser) and(depth int) (Constraint, error) {
	left, err := p.term(depth)
	for err == nil && p.take('&') {
		var right Constraint
		right, err = p.term(depth)
		a, b := left, right
		left = Constraint{func(has func(string) bool) bool { return a.holds(has) && b.holds(has) }}
	}
	return left, err
}

func (p *constraintParser) term(depth int) (Constraint, error) {
	if depth > mostNested {
		return Constraint{}, fmt.Errorf("constraint %q is nested deeper than %d at column %d", p.text, mostNested, p.at+1)
	}
	switch {
	case p.take('!'):
		c, err := p.term(depth + 1)
		return Constraint{func(has func(string) bool) bool { return !c.holds(has) }}, err
	case p.take('('):
		c, err := p.or(depth + 1)
		if err == nil && !p.take(')') {
			err = p.fault("')'")
		}
		return c, err
	}
	begin := p.at
	for p.at < len(p.text) && !strings.ContainsRune(constraintSigns, rune(p.text[p.at])) {
		p.at++
	}
	if p.at == begin {
		return Constraint{}, p.fault("a feature, '!' or '('")
	}
	name := p.text[begin:p.at]
	return Constraint{func(has func(string) bool) bool { return has(name) }}, nil
}
