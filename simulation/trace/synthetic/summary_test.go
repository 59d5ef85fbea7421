package synthetic

import (
	"reflect"
	"testing"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/simulation/trace"
)

func TestASummaryCountsWorkByKindAndTheLoadOfTheWhole(t *testing.T) {
	a := &trace.Shape{User: "a", Application: "wide", JobSpec: cluster.JobSpec{CPUs: 4, Nodes: 2}}
	b := &trace.Shape{User: "b", Application: "wide", JobSpec: cluster.JobSpec{CPUs: 2}}
	c := &trace.Shape{User: "a", Application: "small", JobSpec: cluster.JobSpec{CPUs: 1}}
	made := &trace.Trace{Jobs: []trace.Job{
		{Submit: 1000, Run: 1500, Shape: a}, {Submit: 2000, Run: 500, Shape: b}, {Submit: 11_000, Run: 7000, Shape: c}, {Submit: 11_000, Run: 1000, Shape: a},
	}}
	got := Summarize(made, 1000, 10)
	for i := range got.Kinds {
		got.Kinds[i].work, got.Kinds[i].processors, got.Kinds[i].run = 0, 0, 0
	}
	want := Summary{Jobs: 4, Start: 1000, Span: 10_000, CPUSeconds: 28, Processors: 10, LoadThousandths: 280, Kinds: []KindSummary{
		{Name: "wide", Jobs: 3, CPUSeconds: 21, Users: 2, MeanCPUs: 6000, MeanRun: 1000, LongestRun: 1500},
		{Name: "small", Jobs: 1, CPUSeconds: 7, Users: 1, MeanCPUs: 1000, MeanRun: 7000, LongestRun: 7000},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the summary is\n%+v, want\n%+v", got, want)
	}
}
