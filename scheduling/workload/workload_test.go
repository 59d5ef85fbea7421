package workload

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/scheduling"
)

func sums(jobs []cluster.Job) (cpus, memory int64) {
	for i := range jobs {
		cpus += jobs[i].CPUs
		memory += jobs[i].MemoryMB
	}
	return cpus, memory
}

func TestTheSumsOfWhatJobsNeedAreThoseThatWerePublished(t *testing.T) {
	for _, test := range []struct {
		name         string
		in           scheduling.Input
		cpus, memory int64
	}{
		{"W1 1000", Generic(1_000), 650_400, 1_374_592},
		{"W1 2000", Generic(2_000), 1_339_700, 2_680_028},
		{"W1 5000", Generic(5_000), 3_326_600, 6_729_500},
		{"W1 10000", Generic(10_000), 6_672_250, 13_462_412},
		{"W2 1000", Diverse(1_000), 663_350, 1_341_084},
		{"W2 2000", Diverse(2_000), 1_319_500, 2_769_052},
		{"W2 5000", Diverse(5_000), 3_309_000, 6_708_012},
		{"W4", Estimator(), 2_595_000, 5_190_000},
		{"W5", Loop(), 10_000_000, 10_000_000},
	} {
		if cpus, memory := sums(test.in.Jobs); cpus != test.cpus || memory != test.memory {
			t.Errorf("%s needs %d cpus and %d of memory, and should need %d and %d", test.name, cpus, memory, test.cpus, test.memory)
		}
	}
}

func TestNoTwoDistinctJobsNeedTheSame(t *testing.T) {
	for name, in := range map[string]scheduling.Input{
		"W1": Generic(10_000), "W2": Diverse(5_000), "W4": Estimator(), "W5": Loop(), "W6": Full(200, 200, 60_000), "W8": DeviceJobs(),
	} {
		before := slices.Clone(in.Jobs)
		distinct := Distinct(in)
		seen := map[[2]int64]bool{}
		for i, job := range distinct.Jobs {
			if in.Jobs[i].MemoryMB != before[i].MemoryMB {
				t.Fatalf("%s: job %d itself was changed", name, in.Jobs[i].ID)
			}
			if job.MemoryMB > finer*in.Jobs[i].MemoryMB || job.MemoryMB <= finer*(in.Jobs[i].MemoryMB-100) {
				t.Fatalf("%s: %d became %d", name, in.Jobs[i].MemoryMB, job.MemoryMB)
			}
			seen[[2]int64{job.CPUs, job.MemoryMB}] = true
		}
		if len(seen) != len(in.Jobs) {
			t.Errorf("%s: the %d jobs have %d needs", name, len(in.Jobs), len(seen))
		}
	}
}

func TestAnInstanceIsTheSameEachTime(t *testing.T) {
	for name, build := range map[string]func() scheduling.Input{
		"W1": func() scheduling.Input { return Generic(500) }, "W2": func() scheduling.Input { return Diverse(500) },
		"W9": func() scheduling.Input { return Matrix(100, 10, 50) }, "mixed": Mixed,
	} {
		if !reflect.DeepEqual(build(), build()) {
			t.Errorf("%s differs from itself", name)
		}
	}
}

func TestTheMixedInstanceIsWhatItSays(t *testing.T) {
	in := Mixed()
	classes, tokens, gpus, constrained := map[string]bool{}, 0, 0, 0
	for _, job := range in.Jobs {
		classes[fmt.Sprint(job.CPUs, job.MemoryMB, job.Countables, job.Constraint, job.Tokens, job.TimeLimit)] = true
		tokens += min(len(job.Tokens), 1)
		gpus += min(len(job.Countables), 1)
		constrained += min(len(job.Constraint), 1)
	}
	t.Logf("%d running jobs; of the waiting ones %d need tokens, %d gpus, %d have constraints", len(in.Running), tokens, gpus, constrained)
	if len(in.Jobs) != 100_000 || len(classes) != 500 || len(in.Hosts) != 10_000 || len(in.Resources) != 50 || len(in.Templates) != 50 {
		t.Errorf("%d jobs in %d classes, %d hosts, %d licences, %d templates", len(in.Jobs), len(classes), len(in.Hosts), len(in.Resources), len(in.Templates))
	}
	if tokens < 50_000 || gpus < 5_000 || constrained < 20_000 || len(in.Running) < 20_000 {
		t.Error("it is not mixed enough")
	}
	o := session(t, in)
	t.Logf("%d start, %d are in the demand for %d hosts; the others: %v", o.started, o.demanded, o.hosts, o.codes)
}

// both runs a test on the natural instance and on the one of distinct jobs.
func both(t *testing.T, in scheduling.Input, run func(*testing.T, scheduling.Input)) {
	t.Run("grouped", func(t *testing.T) { run(t, in) })
	t.Run("distinct", func(t *testing.T) { run(t, Distinct(in)) })
}

func TestThePriceOfGenericJobsIsWithinFivePercentOfTheFluidBound(t *testing.T) {
	for _, n := range []int{1_000, 2_000, 5_000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			both(t, Generic(n), func(t *testing.T, in scheduling.Input) {
				o := session(t, in)
				if o.demanded != int64(n) {
					t.Fatalf("%d jobs are in the demand; the others: %v", o.demanded, o.codes)
				}
				checkPrice(t, in, o, 5)
			})
		})
	}
}

// checkPrice checks that the price of demand is at most `percent` above the
// fluid bound, and not below it.
func checkPrice(t *testing.T, in scheduling.Input, o outcome, percent int64) {
	t.Helper()
	bound := fluidBound(t, in.Templates, in.Jobs)
	price := new(big.Rat).SetInt64(int64(o.price))
	above, _ := new(big.Rat).Quo(price, bound).Float64()
	low, _ := bound.Float64()
	t.Logf("bound %.6f, price %s per hour: %.3f %% above; %d hosts", low/1e6, o.price, 100*above-100, o.hosts)
	if price.Cmp(bound) < 0 {
		t.Error("the price is below the bound")
	}
	if price.Cmp(new(big.Rat).Mul(bound, big.NewRat(100+percent, 100))) > 0 {
		t.Errorf("the price is more than %d %% above the bound", percent)
	}
}

func TestDiverseJobsGetOneHostForEachThatMustBeApart(t *testing.T) {
	for _, n := range []int{1_000, 2_000, 5_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			both(t, Diverse(n), func(t *testing.T, in scheduling.Input) {
				o := session(t, in)
				checkPrice(t, in, o, 100)
				if o.demanded != int64(n) || o.hosts != int64(n/5) {
					t.Errorf("%d jobs are in the demand for %d hosts, not %d for %d; the others: %v", o.demanded, o.hosts, n, n/5, o.codes)
				}
			})
		})
	}
}

func TestJobsWithPreferencesAreAllPlaced(t *testing.T) {
	both(t, Preferences(4_000), func(t *testing.T, in scheduling.Input) {
		o := session(t, in)
		checkPrice(t, in, o, 5)
		if o.demanded != 4_000 {
			t.Errorf("%d jobs are in the demand; the others: %v", o.demanded, o.codes)
		}
	})
}

func TestTheEstimatorsJobsFillTheirHostsToTheLast(t *testing.T) {
	both(t, Estimator(), func(t *testing.T, in scheduling.Input) {
		if o := session(t, in); o.demanded != 51_000 || o.hosts != 2_595 {
			t.Errorf("%d jobs are in the demand for %d hosts; the others: %v", o.demanded, o.hosts, o.codes)
		}
	})
}

func TestTheLoopsJobsNeedAThousandHosts(t *testing.T) {
	both(t, Loop(), func(t *testing.T, in scheduling.Input) {
		if o := session(t, in); o.demanded != 50_000 || o.hosts != 1_000 {
			t.Errorf("%d jobs are in the demand for %d hosts; the others: %v", o.demanded, o.hosts, o.codes)
		}
	})
}

// fullSizes are the hosts, running and waiting jobs of W6.
var fullSizes = [][3]int{{1, 30, 1_000}, {10, 300, 1_000}, {100, 3_000, 1_000}, {200, 200, 60_000}, {1_000, 1_000, 12_000}}

func TestJobsThatFitNowhereAllSayWhy(t *testing.T) {
	for _, size := range fullSizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			both(t, Full(size[0], size[1], size[2]), func(t *testing.T, in scheduling.Input) {
				o := session(t, in)
				if o.codes[scheduling.Never] != int64(size[2]) {
					t.Errorf("%d start, the others: %v", o.started, o.codes)
				}
			})
		})
	}
}

func TestHostsWithoutJobsAreIdle(t *testing.T) {
	idle := map[string]bool{}
	for _, s := range session(t, IdlePacked()).Idle {
		if s.Host <= hostName(800) || s.Units != 1 || s.Since != Now {
			t.Errorf("%+v", s)
		}
		idle[s.Host] = true
	}
	if len(idle) != 1_200 {
		t.Errorf("%d hosts are idle", len(idle))
	}
}

func TestDevicesDecideHowManyHostsThereMustBe(t *testing.T) {
	both(t, DeviceJobs(), func(t *testing.T, in scheduling.Input) {
		if o := session(t, in); o.demanded != 4_000 || o.hosts != 500 {
			t.Errorf("%d jobs are in the demand for %d hosts; the others: %v", o.demanded, o.hosts, o.codes)
		}
	})
}

func TestNoHostIsDemandedForAJobThatLacksALicence(t *testing.T) {
	both(t, LicensedDeviceJobs(), func(t *testing.T, in scheduling.Input) {
		o := session(t, in)
		if o.demanded != 3_200 || o.hosts != 400 || o.codes[scheduling.WaitTokens] != 800 {
			t.Errorf("%d jobs are in the demand for %d hosts; the others: %v", o.demanded, o.hosts, o.codes)
		}
		var tokens int64
		for _, d := range o.Demand {
			if d.Resource == "licence" {
				tokens += d.Units
			}
		}
		if tokens != 3_200 {
			t.Errorf("%d tokens are in the demand", tokens)
		}
		for _, u := range o.Unplaced {
			if u.Code == scheduling.WaitTokens && !strings.Contains(u.Why, "licence") {
				t.Errorf("%d jobs are told: %s", u.Count, u.Why)
			}
		}
	})
}

// Wherever there are licences, the last fifth of the jobs of the matrix lacks
// tokens. Some of the others wait behind one that is larger than what is left of
// any host, until that one has a host that is made for it. All the rest start or
// are in the demand.
func TestEveryJobOfTheMatrixStartsOrIsDemandedOrExplained(t *testing.T) {
	for _, hosts := range MatrixHosts {
		for _, templates := range MatrixTemplates {
			for _, licences := range MatrixLicences {
				t.Run(fmt.Sprintf("%d hosts %d templates %d licences", hosts, templates, licences), func(t *testing.T) {
					o := session(t, Matrix(hosts, templates, licences))
					t.Logf("%d start, %d are in the demand for %d hosts; %v", o.started, o.demanded, o.hosts, o.codes)
					checkMatrix(t, o, hosts, licences)
				})
			}
		}
	}
}

func checkMatrix(t *testing.T, o outcome, hosts, licences int) {
	t.Helper()
	lack := int64(0)
	if licences > 0 {
		lack = 1_000
	}
	placed, explained := o.started+o.demanded, o.codes[scheduling.WaitTokens]+o.codes[scheduling.WaitBehind]
	if placed+explained != 5_000 || explained < lack {
		t.Errorf("%d have a place or will have one, %d wait for others; %v", placed, explained, o.codes)
	}
	if (o.codes[scheduling.WaitTokens] > 0) != (licences > 0) {
		t.Errorf("%d wait for tokens", o.codes[scheduling.WaitTokens])
	}
	if hosts == 0 && (o.started > 0 || explained != lack) {
		t.Errorf("%d start without hosts, and %d are not in the demand", o.started, explained)
	}
	if hosts == 10_000 && (o.hosts > 0 || explained != lack) {
		t.Errorf("%d hosts are in the demand though there are enough, and %d have no place", o.hosts, explained)
	}
}
