package hostfactory

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers/check"
)

func (f *fake) checked(spec Spec) (check.Report, string) {
	f.t.Helper()
	spec.PollInterval, spec.Settle = time.Millisecond, 20*time.Millisecond
	var out bytes.Buffer
	report, err := runCheck(f.t.Context(), spec, 200*time.Millisecond, &out, func(a *Adapter) {
		a.execute, a.now = f.execute, func() cluster.Time { return cluster.TimeOf(time.Now()) }
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return report, out.String()
}

func found(report check.Report, verdict check.Verdict) (names []string) {
	for _, row := range report.Rows {
		if row.Verdict == verdict {
			names = append(names, row.Check)
		}
	}
	return names
}

func TestTheCheckOfAGoodPluginIsClean(t *testing.T) {
	f := newFake(t)
	report, out := f.checked(CheckSpec(f.spec().Scripts, LSF))
	if got := found(report, check.OK); len(got) != len(checks) {
		t.Errorf("clean are %q\n%s", got, out)
	}
	if len(f.runningIDs()) > 0 || len(f.machines) != 1 {
		t.Errorf("made %d machines, running %q", len(f.machines), f.runningIDs())
	}
}

func TestTheCheckFindsFaults(t *testing.T) {
	tests := []struct {
		name, row string
		verdict   check.Verdict
		bend      func(f *fake)
	}{
		{"noise", "getAvailableTemplates", check.Warning, func(f *fake) { jsonBecomes(f, getTemplates, func(s string) string { return "hello\n" + s }) }},
		{"no templates", "getAvailableTemplates", check.Wrong, func(f *fake) { f.bend(getTemplates, says("", 1)) }},
		{"no size", "getAvailableTemplates", check.Warning, func(f *fake) { f.bend(getTemplates, says(`{"templates":[{"templateId":"a","maxNumber":1}]}`, 0)) }},
		{"unknown ids run for ever", "getRequestStatus of an unknown request", check.Warning, func(f *fake) {
			jsonBecomes(f, getStatus, func(s string) string {
				return strings.Replace(s, `"status":"complete_with_error"`, `"status":"running"`, 1)
			})
		}},
		{"no request id", "requestMachines", check.Wrong, func(f *fake) { f.bend(requestMachines, says(`{"message":"ok"}`, 0)) }},
		{"refused", "requestMachines", check.Warning, func(f *fake) { f.bend(requestMachines, says(`{"message":"no"}`, 1)) }},
		{"two documents", "requestMachines", check.Warning, func(f *fake) {
			jsonBecomes(f, requestMachines, func(s string) string { return s + `{"requestId":"other"}` })
		}},
		{"no machine", "the machine comes", check.Wrong, func(f *fake) { f.made = 0 }},
		{"two machines", "the machine comes", check.Warning, func(f *fake) { f.made = 2 }},
		{"no launchtime", "the machine comes", check.Warning, func(f *fake) {
			jsonBecomes(f, getStatus, func(s string) string { return strings.ReplaceAll(s, "launchtime", "started") })
		}},
		{"one bad id voids all", "getRequestStatus of a known and an unknown one", check.Warning, func(f *fake) {
			f.bend(getStatus, func(in map[string]any) (string, int) {
				if slices.Contains(askedIDs(in), noSuch) {
					return "", 1
				}
				return f.getStatus(in)
			})
		}},
		{"it wants its machine back", "getReturnRequests with the machine", check.Wrong, func(f *fake) {
			f.bend(getReturnRequests, func(in map[string]any) (string, int) { return asAnswer(object{"requests": in["machines"]}), 0 })
		}},
		{"nothing is returned", "requestReturnMachines, and the machine is gone", check.Wrong, func(f *fake) {
			f.bend(returnMachines, says(`{"requestId":"leak","message":"success"}`, 0))
		}},
		{"a second return fails", "requestReturnMachines once more", check.Warning, func(f *fake) {
			f.bend(returnMachines, func(in map[string]any) (string, int) {
				if f.countCalls(returnMachines) > 1 {
					return `{"error":true}`, 1
				}
				return f.returnMachines(in)
			})
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newFake(t)
			test.bend(f)
			report, out := f.checked(CheckSpec(f.spec().Scripts, LSF))
			if !slices.Contains(found(report, test.verdict), test.row) {
				t.Errorf("not %s: %s\n%s", test.verdict, test.row, out)
			}
			if test.name != "nothing is returned" && len(f.runningIDs()) > 0 {
				t.Errorf("running: %q\n%s", f.runningIDs(), out)
			}
		})
	}
}

// TestTheCheckSparesMachinesOfOthers: an empty list would end them with some plug-ins.
func TestTheCheckSparesMachinesOfOthers(t *testing.T) {
	f := newFake(t)
	a := f.with(1)
	spec := CheckSpec(f.spec().Scripts, LSF)
	spec.Work = f.spec().Work
	touch(t, spec.Work+"/aws-db.json")
	before := f.countCalls(getReturnRequests)
	report, _ := f.checked(spec)
	if got := found(report, check.Skipped); len(got) != 2 || f.countCalls(getReturnRequests) != before {
		t.Errorf("skipped %q", got)
	}
	if list, _ := a.List(t.Context()); len(list.Grants) != 1 || len(f.runningIDs()) != 1 {
		t.Errorf("%+v, running %q", list, f.runningIDs())
	}
}
