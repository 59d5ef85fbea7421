package report

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation"
	"xce.internal/elastic/simulation/series"
)

// costPoints is at how many points of time the money spent is drawn.
const costPoints = 400

// expense is money that is spent evenly over some time.
type expense struct {
	from, to cluster.Time
	amount   cluster.Price
}

// costChart answers how much money had been spent, for hosts and for tokens of each resource.
func costChart(r *simulation.Result) (*chart, bool) {
	names, expenses := []string{"hosts"}, [][]expense{nil}
	places := map[string]int{}
	for _, res := range r.Resources {
		places[res.Name] = len(names)
		names, expenses = append(names, "tokens of "+res.Name), append(expenses, nil)
	}
	for i := range r.Machines {
		m := &r.Machines[i]
		expenses[0] = append(expenses[0], expense{m.Expected, until(m.Closed, r.Ended), m.Cost})
	}
	for i := range r.Loans {
		l := &r.Loans[i]
		if at, known := places[l.Resource]; known {
			expenses[at] = append(expenses[at], expense{l.Committed, until(l.Closed, r.Ended), l.Cost})
		}
	}
	width := (int64(r.Ended.Sub(r.Began)) + costPoints - 1) / costPoints
	if width <= 0 {
		return nil, false
	}
	var shown []string
	var columns [][]int64
	for i, list := range expenses {
		if spent := spending(list, r.Began, width); spent[costPoints] > 0 {
			shown, columns = append(shown, names[i]), append(columns, spent)
		}
	}
	return spendingChart(r, shown, columns, width)
}

// spending answers what had been spent at each point of time.
func spending(list []expense, began cluster.Time, width int64) []int64 {
	spent := make([]int64, costPoints+1)
	for _, e := range list {
		last := int64(0)
		first := max(int64(e.from.Sub(began))/width, 0)
		for i := min(first, costPoints); i <= costPoints; i++ {
			at := began.Add(cluster.Duration(i * width))
			sum := int64(e.amount)
			if at < e.to && i < costPoints {
				sum = ratio(sum, max(int64(at.Sub(e.from)), 0), int64(e.to.Sub(e.from)))
			}
			spent[i] += sum - last
			if last = sum; at >= e.to {
				break
			}
		}
	}
	for i := range costPoints {
		spent[i+1] += spent[i]
	}
	return spent
}

func spendingChart(r *simulation.Result, names []string, columns [][]int64, width int64) (*chart, bool) {
	s := &series.Series{Columns: names, End: r.Ended, Max: make([]int64, len(names))}
	for i := range costPoints + 1 {
		at := min(r.Began.Add(cluster.Duration(int64(i)*width)), r.Ended)
		values := make([]int64, len(names))
		for c := range columns {
			values[c] = columns[c][i]
		}
		s.Append(at, values...)
	}
	c, has := timeChart("cost", "Money spent", "currency units", s)
	if !has || len(names) == 0 {
		return nil, false
	}
	c.Divide = 1_000_000
	c.Note = "The cost of each host and loan is spread evenly over the time for which it was held."
	for i, name := range names {
		c.line(name, (i+1)%8, true, s, column(i))
	}
	c.rows = nil // they have no meaning as means
	return c, true
}
