package slurm

import (
	"strings"
	"testing"
)

func TestMeanings(t *testing.T) {
	for reason, want := range map[string]struct {
		barred, itself bool
		says           string
	}{
		"None":                                 {false, false, "not looked"},
		"":                                     {false, false, "not looked"},
		"Priority":                             {false, false, "higher priority"},
		"Resources":                            {false, false, "hosts"},
		"Licenses":                             {false, false, "tokens"},
		"ReqNodeNotAvail, UnavailableNodes:c3": {false, false, "hosts"},
		"ReqNodeNotAvail,_UnavailableNodes:c[1-3],d4":    {false, false, "hosts"},
		"ReqNodeNotAvail, May be reserved for other job": {false, false, "hosts"},
		"ReqNodeNotAvail, Reserved for maintenance":      {true, true, "maintenance"},
		"ReqNodeNotAvail,_Reserved_for_maintenance":      {true, true, "maintenance"},
		"(Resources)":                     {false, false, "hosts"},
		"BeginTime":                       {true, true, "begin time"},
		"Dependency":                      {true, true, "another job"},
		"DependencyNeverSatisfied":        {true, false, "never"},
		"JobHeldUser":                     {true, false, "user holds"},
		"JobHeldAdmin":                    {true, false, "administrator holds"},
		"launch failed requeued held":     {true, false, "held"},
		"job requeued in held state":      {true, false, "held"},
		"JobArrayTaskLimit":               {true, true, "array"},
		"PartitionConfig":                 {false, false, "partition"},
		"PartitionNodeLimit":              {false, false, "partition"},
		"PartitionTimeLimit":              {true, false, "partition"},
		"PartitionDown":                   {true, false, "partition"},
		"AssocGrpCpuLimit":                {true, true, "account"},
		"QOSMaxJobsPerUserLimit":          {true, true, "quality"},
		"AssocMaxWallDurationPerJobLimit": {true, false, "one job"},
		"QOSMinGRES":                      {true, false, "less"},
		"BadConstraints":                  {true, false, "nothing"},
		"Reservation":                     {true, true, "reservation"},
		"SomethingNew, of 2031":           {true, false, `Slurm says "SomethingNew, of 2031", which is not known here`},
		"\x1b[31mRed":                     {true, false, `not known here`},
		"Nodes required for job are DOWN, DRAINED or something":                                         {false, false, "down"},
		"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions":   {false, false, "down"},
		"(Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions)": {false, false, "down"},
	} {
		m := meaningOf(reason)
		if m.Barred() != want.barred || m.Itself != want.itself || !strings.Contains(m.Why, want.says) {
			t.Errorf("%q means %+v, want barred %v, by itself %v, and %q", reason, m, want.barred, want.itself, want.says)
		}
		if strings.Contains(m.Why, "\x1b") {
			t.Errorf("%q: %q steers a terminal", reason, m.Why)
		}
	}
}

func TestEveryMeaningGoesOnASentence(t *testing.T) {
	for reason, m := range meanings {
		if m.Why == "" || strings.HasSuffix(m.Why, ".") || m.Why[:1] == strings.ToUpper(m.Why[:1]) && !strings.HasPrefix(m.Why, "Slurm") || m.Itself && !m.Barred() {
			t.Errorf("%s means %+v", reason, m)
		}
		if got := meaningOf(reason); got != m {
			t.Errorf("%s is looked up as %+v", reason, got)
		}
	}
	if len(meanings) < 200 {
		t.Errorf("only %d reasons are known", len(meanings))
	}
}
