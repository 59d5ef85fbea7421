package report

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

const day = 24 * cluster.Hour

// short answers a length of time with at most two units, as tables have it.
func short(d cluster.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d == 0:
		return "0s"
	case d < cluster.Second:
		return fmt.Sprintf("%dms", d)
	}
	if r := rounded(d, cluster.Second/10); r < cluster.Minute {
		return strings.TrimSuffix(fmt.Sprintf("%d.%d", r/cluster.Second, r%cluster.Second/(cluster.Second/10)), ".0") + "s"
	}
	if r := rounded(d, cluster.Second); r < cluster.Hour {
		return two(r, cluster.Minute, "m", cluster.Second, "s")
	}
	if r := rounded(d, cluster.Minute); r < day {
		return two(r, cluster.Hour, "h", cluster.Minute, "m")
	}
	return two(rounded(d, cluster.Hour), day, "d", cluster.Hour, "h")
}

func rounded(d, unit cluster.Duration) cluster.Duration { return (d + unit/2) / unit * unit }

func two(d, large cluster.Duration, largeName string, small cluster.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf("%d%s", rest, smallName)
	}
	return text
}

// moment answers day and time of t in UTC, with its year.
func moment(t cluster.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Std().Format("2006-01-02 15:04:05")
}

// money answers an amount in currency units, rounded to hundredths.
func money(p cluster.Price) string {
	if p < 0 {
		return "-" + money(-p)
	}
	hundredths := (p + 5_000) / 10_000
	return fmt.Sprintf("%d.%02d", hundredths/100, hundredths%100)
}

// hours answers a sum of unit-milliseconds in unit-hours, rounded to tenths.
func hours(ms int64) string { return fixed(ratio(ms, 10, int64(cluster.Hour)), 1) }

// fixed answers n as a number of which the last so many digits are decimals.
func fixed(n int64, decimals int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	text := fmt.Sprintf("%0*d", decimals+1, n)
	at := len(text) - decimals
	return sign + text[:at] + "." + text[at:]
}

// factor answers a number of thousandths, with as many decimals as tell something.
func factor(thousandths int64) string {
	switch m := magnitude(thousandths); {
	case m < 9_995:
		return fixed(ratio(thousandths, 1, 10), 2)
	case m < 99_950:
		return fixed(ratio(thousandths, 1, 100), 1)
	}
	return strconv.FormatInt(ratio(thousandths, 1, 1000), 10)
}

// percent answers hundredths of a percent.
func percent(hundredths int64) string { return fixed(ratio(hundredths, 1, 10), 1) + " %" }

// shareText answers how much of the whole a part is; "-" where there is no whole.
func shareText(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return percent(share(part, whole))
}

// share answers how much of the whole a part is, in hundredths of a percent; 0 where there is no whole.
func share(part, whole int64) int64 { return ratio(part, 10_000, whole) }

// ratio answers part*scale/whole, rounded half away from zero; 0 where there is no whole. Neither the
// product nor the rounding overflows.
func ratio(part, scale, whole int64) int64 {
	negative := (part < 0) != (whole < 0)
	if whole == 0 {
		return 0
	}
	p, w := magnitude(part), magnitude(whole)
	high, low := bits.Mul64(p, uint64(scale))
	low, carry := bits.Add64(low, w/2, 0)
	high += carry
	if high >= w {
		return 0 // no figure of a report is so large
	}
	q, _ := bits.Div64(high, low, w)
	if negative {
		return -int64(q)
	}
	return int64(q)
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// label answers what the source calls a job.
func label(j *trace.Job) string {
	if j.Name != "" {
		return j.Name
	}
	return strconv.FormatInt(j.ID, 10)
}

// named answers a name, or what stands for none.
func named(name, none string) string {
	if name == "" {
		return none
	}
	return name
}

// plural answers a count with its noun.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
