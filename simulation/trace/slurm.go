package trace

import (
	"strconv"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
)

// localTime reads a time as Slurm writes it, in a zone where it names none, or as
// seconds since 1970; known is false for the words that mean no time.
func localTime(text string, zone *time.Location) (at cluster.Time, known, ok bool) {
	switch text {
	case "", "Unknown", "None", "N/A", "INVALID", "NONE":
		return 0, false, true
	}
	if n, isNumber := integer([]byte(text)); isNumber {
		return cluster.Time(n * 1000), n > 0, n >= 0 && n <= mostSeconds
	}
	if zone == nil {
		zone = time.UTC
	}
	year, month, day, ok1 := date(text)
	if !ok1 || len(text) < 19 || text[10] != 'T' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return 0, false, false
	}
	hour, ok1 := digits(text[11:13], 23)
	minute, ok2 := digits(text[14:16], 59)
	second, ok3 := digits(text[17:19], 60)
	if !ok1 || !ok2 || !ok3 {
		return 0, false, false
	}
	if rest := text[19:]; rest != "" {
		offset, err := time.Parse("Z0700", strings.Replace(rest, ":", "", 1))
		if err != nil {
			return 0, false, false
		}
		zone = offset.Location()
	}
	at = cluster.TimeOf(time.Date(year, time.Month(month), day, hour, minute, second, 0, zone))
	return at, at > 0, at >= 0 && at <= mostTime
}

// date reads the day at the beginning of a text such as 2026-01-31.
func date(text string) (year, month, day int, ok bool) {
	if len(text) < 10 || text[4] != '-' || text[7] != '-' {
		return 0, 0, 0, false
	}
	year, ok1 := digits(text[:4], 9999)
	month, ok2 := digits(text[5:7], 12)
	day, ok3 := digits(text[8:10], 31)
	return year, month, day, ok1 && ok2 && ok3 && month > 0 && day > 0
}

func digits(text string, most int) (n int, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, n <= most
}

// count is how many of something.
type count struct {
	name string
	n    int64
}

// tres is what a list of trackable resources says.
type tres struct {
	cpus, nodes, memory string
	licences, gres      []count
}

// tresOf reads a list such as "cpu=4,mem=8G,node=1,gres/gpu=2,license/vcs=1".
func tresOf(text string) (t tres) {
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		kind, what, _ := strings.Cut(name, "/")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch {
		case name == "cpu":
			t.cpus = value
		case name == "node":
			t.nodes = value
		case name == "mem":
			t.memory = value
		case kind == "license" && what != "":
			t.licences = append(t.licences, count{withoutServer(what), n})
		case kind == "gres" && what != "" && n > 0:
			t.addGres(what, n)
		}
	}
	return t
}

// addGres adds a generic resource. One with a type, as in gpu:a100, is a part of
// the plain one, where there is that too.
func (t *tres) addGres(name string, n int64) {
	plain, _, typed := strings.Cut(name, ":")
	for i := range t.gres {
		if t.gres[i].name == plain {
			if !typed {
				t.gres[i].n = max(t.gres[i].n, n)
			}
			return
		}
	}
	t.gres = append(t.gres, count{plain, n})
}

// licencesOf reads a list such as "vcs:2,verdi@server" or "vcs=2".
func licencesOf(text string) (all []count) {
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		name, value, given := strings.Cut(strings.Replace(part, "=", ":", 1), ":")
		n := int64(1)
		if given {
			n, _ = strconv.ParseInt(value, 10, 64)
		}
		if name = withoutServer(name); name != "" && name != "(null)" {
			all = append(all, count{name, n})
		}
	}
	return all
}

func withoutServer(licence string) string {
	name, _, _ := strings.Cut(licence, "@")
	return name
}

// leadingNumber answers the number with which a text begins, or 0.
func leadingNumber(text string) int64 {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	n, _ := integer([]byte(text[:end]))
	return n
}

// elements answers how many elements of an array a text such as "[9-11,13%2]"
// stands for; at least 1.
func elements(text string) (n int64) {
	text, _, _ = strings.Cut(strings.Trim(text, "[]"), "%")
	for part := range strings.SplitSeq(text, ",") {
		part, step, stepped := strings.Cut(part, ":")
		from, to, ranged := strings.Cut(part, "-")
		first, last := leadingNumber(from), leadingNumber(to)
		switch {
		case ranged && last > first && last-first < mostProcs:
			each := int64(1)
			if stepped {
				each = max(leadingNumber(step), 1)
			}
			n += (last-first)/each + 1
		default:
			n++
		}
	}
	return max(n, 1)
}
