package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
)

func sortProblems(ps cluster.Problems) {
	slices.SortStableFunc(ps, func(a, b cluster.Problem) int { return cmp.Compare(a.Path, b.Path) })
}

// hours is a window that was read.
type hours struct {
	days     [7]bool // by time.Weekday
	from, to clock
}

// clock is a time of the day in minutes.
type clock int

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (w Window) parse() (h hours, err error) {
	if h.days, err = parseDays(w.Days); err != nil {
		return h, err
	}
	if h.from, err = parseClock(w.From); err != nil {
		return h, err
	}
	h.to, err = parseClock(w.To)
	return h, err
}

func parseDays(text string) (days [7]bool, err error) {
	if text == "" {
		return [7]bool{true, true, true, true, true, true, true}, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		i, j := slices.Index(weekdays, first), slices.Index(weekdays, last)
		if i < 0 || j < 0 {
			return days, fmt.Errorf("%q names no days", part)
		}
		for ; ; i = (i + 1) % 7 {
			days[i] = true
			if i == j {
				break
			}
		}
	}
	return days, nil
}

func parseClock(text string) (clock, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		if text == "24:00" {
			return 24 * 60, nil
		}
		return 0, fmt.Errorf("%q is no time of the day", text)
	}
	return clock(t.Hour()*60 + t.Minute()), nil
}

// span answers when the window of one day begins and ends. On days on which clocks are put
// forward or back it is as long as clocks make it.
func (h hours) span(day time.Time) (from, to time.Time) {
	at := func(day time.Time, c clock) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), 0, int(c), 0, 0, day.Location())
	}
	from, to = at(day, h.from), at(day, h.to)
	if h.to <= h.from {
		to = at(day.AddDate(0, 0, 1), h.to)
	}
	return from, to
}

// look answers whether the window is open at t, and when that changes next.
func (h hours) look(t time.Time) (open bool, change time.Time) {
	noon := time.Date(t.Year(), t.Month(), t.Day(), 12, 0, 0, 0, t.Location())
	for d := -2; d <= 8; d++ {
		day := noon.AddDate(0, 0, d)
		if !h.days[day.Weekday()] {
			continue
		}
		from, to := h.span(day)
		open = open || !t.Before(from) && t.Before(to)
		for _, edge := range []time.Time{from, to} {
			if edge.After(t) && (change.IsZero() || edge.Before(change)) {
				change = edge
			}
		}
	}
	return open, change
}

// terms is what a supply is like at one moment, and when that changes next; 0 for never.
type terms struct {
	capacity, price int64
	until           cluster.Time
}

// at answers what the supply is like at a time.
func (s Supply) at(now, began cluster.Time, zone *time.Location) terms {
	t := terms{capacity: s.Capacity, price: s.Price}
	change := func(at cluster.Time) {
		if at > now && (t.until == 0 || at < t.until) {
			t.until = at
		}
	}
	set := func(capacity, price *int64) {
		if capacity != nil {
			t.capacity = *capacity
		}
		if price != nil {
			t.price = *price
		}
	}
	for _, step := range s.Steps {
		if at := began.Add(step.After); at <= now {
			set(step.Capacity, step.Price)
		} else {
			change(at)
		}
	}
	for _, w := range s.Windows {
		h, err := w.parse()
		if err != nil {
			continue // refused before
		}
		open, edge := h.look(now.Std().In(zone))
		if open {
			set(w.Capacity, w.Price)
		}
		change(cluster.TimeOf(edge))
	}
	return t
}

// spells answers a period after the other, of a spell that comes by chance.
type spells struct {
	Spell
	chance  Chance
	purpose string
	n       int
	from    cluster.Time
	to      cluster.Time
}

// look answers whether the spell is on, and when that changes next; 0 for never. Times never go back.
func (s *spells) look(now, began cluster.Time) (on bool, change cluster.Time) {
	for s.Every > 0 && now >= s.to {
		last := max(s.to, began)
		s.n++
		key := fmt.Sprint(s.n)
		s.from = last.Add(max(s.chance.exponential(s.Every, s.purpose, "every", key), cluster.Second))
		s.to = s.from.Add(max(s.chance.exponential(s.Lasts, s.purpose, "lasts", key), cluster.Second))
	}
	next := func(from, to cluster.Time) {
		on = on || from <= now && now < to
		for _, edge := range []cluster.Time{from, to} {
			if edge > now && (change == 0 || edge < change) {
				change = edge
			}
		}
	}
	if s.Every > 0 {
		next(s.from, s.to)
	}
	for _, p := range s.Times {
		next(began.Add(p.After), began.Add(p.After).Add(p.Lasts))
	}
	return on, change
}
