package slurm

import (
	"fmt"
	"slices"
	"strings"
)

// mostHosts is how many names one list may have.
const mostHosts = 1 << 16

// ExpandHosts answers the names that Slurm's short form of a list stands for, in its
// order, as in "c[1-3,07-09],n4". Errors name the place, counted in bytes from 0.
func ExpandHosts(list string) ([]string, error) {
	e := expander{list: list}
	var names []string
	for {
		some, err := e.item(mostHosts - len(names))
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
		if e.at == len(list) {
			return names, nil
		}
		e.at++ // the comma
	}
}

// expander reads a list of hosts from left to right.
type expander struct {
	list string
	at   int
}

func (e *expander) fault(format string, args ...any) error {
	return fmt.Errorf("host list %q, at %d: %s", e.list, e.at, fmt.Sprintf(format, args...))
}

// item reads up to the next comma outside of brackets.
func (e *expander) item(most int) ([]string, error) {
	begin, names := e.at, []string{""}
	for e.at < len(e.list) && e.list[e.at] != ',' {
		var parts []string
		switch c := e.list[e.at]; {
		case c == '[':
			some, err := e.ranges(most)
			if err != nil {
				return nil, err
			}
			parts = some
		case c == ']' || c <= ' ':
			return nil, e.fault("%q has no place here", c)
		default:
			end := len(e.list)
			if i := strings.IndexFunc(e.list[e.at:], func(r rune) bool { return r <= ' ' || strings.ContainsRune("[],", r) }); i >= 0 {
				end = e.at + i
			}
			parts = []string{e.list[e.at:end]}
			e.at = end
		}
		if len(names)*len(parts) > most {
			return nil, e.fault("more than %d hosts", mostHosts)
		}
		names = joined(names, parts)
	}
	if e.at == begin {
		return nil, e.fault("a name is missing")
	}
	if len(names) > most {
		return nil, e.fault("more than %d hosts", mostHosts)
	}
	return names, nil
}

func joined(heads, tails []string) []string {
	all := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			all = append(all, h+t)
		}
	}
	return all
}

// ranges reads what is in brackets, the brackets too.
func (e *expander) ranges(most int) ([]string, error) {
	length := strings.IndexByte(e.list[e.at:], ']')
	if length < 0 {
		return nil, e.fault("the bracket is not closed")
	}
	var all []string
	for _, one := range strings.Split(e.list[e.at+1:e.at+length], ",") {
		low, high, isRange := strings.Cut(one, "-")
		if !isRange {
			high = low
		}
		from, err := whole(low)
		to, err2 := whole(high)
		switch {
		case err != nil || err2 != nil:
			return nil, e.fault("%q is no range of numbers", one)
		case from > to:
			return nil, e.fault("the range %q runs backwards", one)
		case to-from >= int64(most-len(all)):
			return nil, e.fault("more than %d hosts", mostHosts)
		}
		for n := from; n <= to; n++ {
			all = append(all, fmt.Sprintf("%0*d", len(low), n))
		}
	}
	e.at += length + 1
	return all, nil
}

// namesIn answers the sorted names of a list that may be empty in Slurm's words.
func namesIn(list string) ([]string, error) {
	if absent(list) {
		return nil, nil
	}
	names, err := ExpandHosts(list)
	slices.Sort(names)
	return slices.Compact(names), err
}
