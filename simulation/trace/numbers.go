package trace

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// whole reads a decimal number and cuts off its decimals; lost tells that they
// were not 0.
func whole(text []byte) (n int64, lost, ok bool) {
	i, negative := 0, false
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		i, negative = 1, text[0] == '-'
	}
	begin := i
	for ; i < len(text) && text[i] != '.'; i++ {
		digit := text[i] - '0'
		if digit > 9 || i-begin == 18 {
			return 0, false, false
		}
		n = n*10 + int64(digit)
	}
	if i == begin {
		return 0, false, false
	}
	if negative {
		n = -n
	}
	if i == len(text) {
		return n, false, true
	}
	for _, c := range text[i+1:] {
		if c < '0' || c > '9' {
			return 0, false, false
		}
		lost = lost || c != '0'
	}
	return n, lost, true
}

// few reads a number of so few digits that it is not too large for anything, without
// decimals: most are such. It tells whether the text is one.
func few(text []byte) (n int64, is bool) {
	if len(text) == 2 && text[0] == '-' && text[1] == '1' { // what is not known
		return -1, true
	}
	if len(text) == 0 || len(text) > 9 {
		return 0, false
	}
	for _, c := range text {
		digit := c - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	return n, true
}

// integer reads a whole number without decimals.
func integer(text []byte) (int64, bool) {
	if bytes.IndexByte(text, '.') >= 0 {
		return 0, false
	}
	n, _, ok := whole(text)
	return n, ok
}

// millis reads seconds with up to three decimals as milliseconds; further ones
// are cut off.
func millis(text []byte) (int64, bool) {
	seconds, decimals, _ := bytes.Cut(text, []byte("."))
	n, ok := integer(seconds)
	if !ok || n < -mostSeconds || n > mostSeconds {
		return 0, false
	}
	ms := int64(0)
	for i := range 3 {
		ms *= 10
		if i < len(decimals) {
			ms += int64(decimals[i] - '0')
		}
	}
	for _, c := range decimals {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	if len(seconds) > 0 && seconds[0] == '-' {
		ms = -ms
	}
	return n*1000 + ms, true
}

// units are the factors of sizes, in bytes, by their letters.
const units = "kmgtpe"

// memory reads a size such as "4G", "1993mb" or "1.000T" in MB, rounded up. A
// number without a unit counts so many bytes.
func memory(text string, plain float64) (mb int64, ok bool) {
	text = strings.ToLower(text)
	digits := strings.TrimRight(text, "bkmgtpewi")
	unit := text[len(digits):]
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(n >= 0) || strings.ContainsAny(digits, "xinp_") {
		return 0, false
	}
	factor := plain
	if unit != "" && unit != "b" {
		if factor = scale(unit); factor == 0 {
			return 0, false
		}
	} else if unit == "b" {
		factor = 1
	}
	mb = ceilMB(n * factor)
	return mb, mb <= mostMB
}

// mostMB is more memory than there is.
const mostMB = 1_000_000_000_000

// scale answers the bytes of a unit such as "k", "mb" or "gib", or 0.
func scale(unit string) float64 {
	if unit == "" {
		return 0
	}
	at := strings.IndexByte(units, unit[0])
	if at < 0 || !slices.Contains([]string{"", "b", "ib", "w"}, unit[1:]) {
		return 0
	}
	factor := 1.0
	for range at + 1 {
		factor *= 1024
	}
	if strings.HasSuffix(unit, "w") {
		factor *= 8 // a word
	}
	return factor
}

func ceilMB(bytes float64) int64 {
	const mb = 1 << 20
	if bytes > mb*2*mostMB {
		return mostMB + 1
	}
	whole := int64(bytes / mb)
	if float64(whole)*mb < bytes {
		whole++
	}
	return whole
}

// clock reads a length of time such as 3-00:00:00, 14:20:00, 05:30 or 90, with
// decimals or not. A number alone counts so much.
func clock(text string, plain cluster.Duration) (cluster.Duration, bool) {
	days, rest, dashed := strings.Cut(text, "-")
	if !dashed {
		days, rest = "0", text
	}
	d, ok := integer([]byte(days))
	if !ok || d < 0 || d > 1_000_000 || rest == "" {
		return 0, false
	}
	rest, decimals, _ := strings.Cut(rest, ".")
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false
	}
	if len(parts) == 1 && !dashed {
		n, ok := integer([]byte(rest))
		if !ok || n < 0 || n > mostSeconds || decimals != "" && strings.Trim(decimals, "0123456789") != "" {
			return 0, false
		}
		return cluster.Duration(n) * plain, true
	}
	// After days come hours first; without, seconds are last.
	total, unit := int64(0), int64(3600)
	if !dashed && len(parts) == 2 {
		unit = 60
	}
	for _, part := range parts {
		n, ok := integer([]byte(part))
		if !ok || n < 0 || n > mostSeconds {
			return 0, false
		}
		total += n * unit
		unit /= 60
	}
	ms := int64(0)
	if decimals != "" {
		fraction, ok := millis([]byte("0." + decimals))
		if !ok {
			return 0, false
		}
		ms = fraction
	}
	return cluster.Duration((d*86400+total)*1000 + ms), true
}
