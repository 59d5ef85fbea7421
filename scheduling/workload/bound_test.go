package workload

import (
	"maps"
	"math/big"
	"slices"
	"testing"

	"xce.internal/elastic/cluster"
)

// fluidBound is the price below which no hosts can be had that have together
// what the jobs need together: that of hosts which can be had in parts and
// filled with jobs that can be cut. It is the linear program
//
//	minimize the sum of price(t) * hosts(t) over all templates t, such that
//	in every dimension d the sum of size(t, d) * hosts(t) is at least need(d),
//
// solved exactly through its dual: values of the dimensions, none negative, at
// which no template is worth more than its price and what the jobs need is worth
// the most. Values with which that holds prove the bound, however they were found.
func fluidBound(t testing.TB, templates []cluster.Template, jobs []cluster.Job) *big.Rat {
	t.Helper()
	need := amounts{}
	for i := range jobs {
		need.job(&jobs[i], 1)
	}
	dims := slices.Sorted(maps.Keys(need))
	size := make([][]int64, len(templates))
	price := make([]int64, len(templates))
	for i, template := range templates {
		has := amounts{}
		has.add(template.CPUs, template.MemoryMB, template.Countables, 1)
		for _, d := range dims {
			size[i] = append(size[i], has[d])
		}
		price[i] = int64(template.Price)
	}
	total := make([]int64, len(dims))
	for d, name := range dims {
		total[d] = need[name]
	}
	values := maximize(total, size, price)
	checkValues(t, values, size, price)
	return worth(values, total)
}

func worth(values []*big.Rat, amounts []int64) *big.Rat {
	sum := new(big.Rat)
	for d, v := range values {
		sum.Add(sum, new(big.Rat).Mul(v, new(big.Rat).SetInt64(amounts[d])))
	}
	return sum
}

func checkValues(t testing.TB, values []*big.Rat, size [][]int64, price []int64) {
	t.Helper()
	for _, v := range values {
		if v.Sign() < 0 {
			t.Fatalf("a value is negative: %v", values)
		}
	}
	for i := range size {
		if worth(values, size[i]).Cmp(new(big.Rat).SetInt64(price[i])) > 0 {
			t.Fatalf("at the values %v template %d is worth more than its price %d", values, i, price[i])
		}
	}
}

// maximize answers the y >= 0 with the largest sum of gain[j] * y[j] for which
// the sum of rows[i][j] * y[j] is at most limit[i] for all i. No limit is
// negative. It is the simplex method, with Bland's rule.
func maximize(gain []int64, rows [][]int64, limit []int64) []*big.Rat {
	p := newProgram(gain, rows, limit)
	for p.step() {
	}
	y := make([]*big.Rat, len(gain))
	for j := range y {
		y[j] = new(big.Rat)
	}
	for i, variable := range p.basic {
		if variable < len(gain) {
			y[variable] = p.rows[i][len(gain)]
		}
	}
	return y
}

// program is a linear program in the form that a step of the simplex method
// works on: the last row is that of the gain, the last column that of constants.
type program struct {
	rows        [][]*big.Rat
	basic, free []int // variables of rows and columns
}

func newProgram(gain []int64, rows [][]int64, limit []int64) *program {
	p := &program{}
	for i := range rows {
		p.rows = append(p.rows, rationals(append(slices.Clone(rows[i]), limit[i])))
		p.basic = append(p.basic, len(gain)+i)
	}
	last := rationals(append(slices.Clone(gain), 0))
	for j := range gain {
		last[j].Neg(last[j])
		p.free = append(p.free, j)
	}
	p.rows = append(p.rows, last)
	return p
}

func rationals(numbers []int64) (row []*big.Rat) {
	for _, n := range numbers {
		row = append(row, new(big.Rat).SetInt64(n))
	}
	return row
}

// step makes one exchange, and tells whether there was one to make.
func (p *program) step() bool {
	column := -1
	for j, variable := range p.free {
		if p.rows[len(p.basic)][j].Sign() < 0 && (column < 0 || variable < p.free[column]) {
			column = j
		}
	}
	if column < 0 {
		return false
	}
	row, least := -1, new(big.Rat)
	for i, variable := range p.basic {
		if p.rows[i][column].Sign() <= 0 {
			continue
		}
		ratio := new(big.Rat).Quo(p.rows[i][len(p.free)], p.rows[i][column])
		if c := ratio.Cmp(least); row < 0 || c < 0 || c == 0 && variable < p.basic[row] {
			row, least = i, ratio
		}
	}
	if row < 0 {
		panic("no template has what the jobs need")
	}
	p.exchange(row, column)
	return true
}

func (p *program) exchange(row, column int) {
	inverse := new(big.Rat).Inv(p.rows[row][column])
	for i := range p.rows {
		if i == row || p.rows[i][column].Sign() == 0 {
			continue
		}
		factor := new(big.Rat).Mul(p.rows[i][column], inverse)
		for j := range p.rows[i] {
			if j != column {
				p.rows[i][j].Sub(p.rows[i][j], new(big.Rat).Mul(factor, p.rows[row][j]))
			}
		}
		p.rows[i][column].Neg(factor)
	}
	for j := range p.rows[row] {
		if j != column {
			p.rows[row][j].Mul(p.rows[row][j], inverse)
		}
	}
	p.rows[row][column].Set(inverse)
	p.basic[row], p.free[column] = p.free[column], p.basic[row]
}

func TestTheFluidBoundIsThatOfHostsInParts(t *testing.T) {
	small := cluster.Template{Name: "small", Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 4}, Price: 40}
	wide := cluster.Template{Name: "wide", Capacity: cluster.Capacity{CPUs: 2, MemoryMB: 12}, Price: 60}
	poor := cluster.Template{Name: "poor", Capacity: cluster.Capacity{CPUs: 4, MemoryMB: 4}, Price: 41}
	job := func(cpus, memory int64) cluster.Job {
		return cluster.Job{JobSpec: cluster.JobSpec{CPUs: cpus, MemoryMB: memory}}
	}
	for _, test := range []struct {
		name string
		jobs []cluster.Job
		want *big.Rat
	}{
		{"one dimension binds", []cluster.Job{job(10, 1)}, big.NewRat(100, 1)},
		// 4s + 2w = 12 and 4s + 12w = 32: w = 2, s = 2.
		{"two templates in the mix that fits", []cluster.Job{job(6, 16), job(6, 16)}, big.NewRat(200, 1)},
		{"parts of one host", []cluster.Job{job(1, 1)}, big.NewRat(10, 1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := fluidBound(t, []cluster.Template{poor, wide, small}, test.jobs); got.Cmp(test.want) != 0 {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	if got := fluidBound(t, Loop().Templates, Loop().Jobs); got.Cmp(big.NewRat(1_000*1_000_000, 1)) != 0 {
		t.Errorf("the bound of W5 is %s", got)
	}
}
