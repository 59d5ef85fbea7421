package slurm

import (
	"strings"

	"xce.internal/elastic/cluster"
)

// translate answers Slurm's features as a constraint of ours, or why they cannot be judged.
func translate(features string) (constraint, unjudged string) {
	if features == "" {
		return "", ""
	}
	if strings.ContainsAny(features, "[]*!") {
		return "", "it asks for the features " + features + ", which say how many hosts of each kind; that cannot be judged here"
	}
	text := strings.ReplaceAll(features, ",", "&")
	if mixes(text) {
		return "", "it asks for the features " + features + ", which join & and | without parentheses; that cannot be judged here"
	}
	if _, err := cluster.ParseConstraint(text); err != nil {
		return "", "it asks for the features " + features + ", which cannot be read here"
	}
	return text, ""
}

// mixes tells whether & and | are joined side by side: Slurm reads that from left
// to right, in other ways in other releases, and we let & bind closer.
func mixes(text string) bool {
	joins := []byte{0}
	for i := range len(text) {
		last := len(joins) - 1
		switch c := text[i]; c {
		case '(':
			joins = append(joins, 0)
		case ')':
			if last > 0 {
				joins = joins[:last]
			}
		case '&', '|':
			if joins[last] != 0 && joins[last] != c {
				return true
			}
			joins[last] = c
		}
	}
	return false
}

// either answers a constraint that one of several features meets.
func either(prefix string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := prefix + strings.Join(names, " | "+prefix)
	if len(names) > 1 {
		text = "(" + text + ")"
	}
	return text
}

// allOf joins constraints, of which some may be empty.
func allOf(constraints ...string) string {
	kept := constraints[:0]
	for _, c := range constraints {
		if c != "" {
			kept = append(kept, c)
		}
	}
	if len(kept) == 1 {
		return kept[0]
	}
	for i, c := range kept {
		if strings.Contains(c, "|") && !closes(c) {
			kept[i] = "(" + c + ")"
		}
	}
	return strings.Join(kept, " & ")
}

// closes tells whether a text is in parentheses as a whole.
func closes(text string) bool {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return i == len(text)-1
		}
	}
	return false
}
