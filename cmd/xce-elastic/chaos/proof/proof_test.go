package proof

import (
	"slices"
	"strings"
	"testing"

	"xce.internal/elastic/cmd/xce-elastic/chaos/evidence"
)

const (
	loanID = "loan/vcs/pool-1"
	hostID = "host/small-1"
)

// good is a run in which a loan and a host come and go, under two holders of the lease: the first is killed.
func good() evidence.Evidence {
	loan := func(state string, borrowed, fenced, returned int64) *evidence.Loan {
		return &evidence.Loan{ID: loanID, Provider: "pool", Resource: "vcs", State: state, Units: 4, Borrowed: borrowed, Fenced: fenced, Returned: returned}
	}
	host := func(state string) *evidence.Host {
		h := &evidence.Host{ID: hostID, Provider: "farm", Template: "small", State: state}
		if state != "requested" {
			h.Instance = "i-1"
		}
		return h
	}
	job := func(id int64, state, on string, requeues int64) *evidence.Job {
		j := &evidence.Job{ID: id, Name: "a", State: state, Host: on, Requeues: requeues, Tokens: map[string]int64{"vcs": 5}}
		if id == 2 {
			j.Name, j.Tokens = "b", nil
		}
		return j
	}
	e := evidence.Evidence{
		Seed: 7, Began: 1000, Ended: 9000,
		Faults: []evidence.Fault{{At: 4500, Until: 5000, Kind: "kill", Target: "p1", Held: []string{"pool", Sessions}, Text: "p1 is killed"}},
		Lenders: []evidence.Lender{{Name: "pool", Lines: []evidence.LoanLine{
			{Sequence: 1, At: 900, Resource: "vcs", Change: "capacity", Units: 8, Free: 8},
			{Sequence: 2, At: 2100, Request: loanID, Resource: "vcs", Change: "granted", Units: 4, Free: 4},
			{Sequence: 3, At: 6100, Request: loanID, Resource: "vcs", Change: "returned", Units: 4, Free: 8},
		}}},
		Makers: []evidence.Maker{{Name: "farm", Lines: []evidence.HostLine{
			{Sequence: 1, At: 900, Template: "small", Change: "capacity"},
			{Sequence: 2, At: 2100, Request: hostID, Instance: "i-1", Change: "requested"},
			{Sequence: 3, At: 2100, Request: hostID, Instance: "i-1", Change: "granted"},
			{Sequence: 4, At: 2100, Request: hostID, Instance: "i-1", Change: "started"},
			{Sequence: 5, At: 7100, Request: hostID, Instance: "i-1", Change: "returned"},
		}}},
		Submitted: []evidence.Submission{{Name: "a"}, {Name: "b"}},
		Marks: []evidence.Mark{
			{At: 3050, Job: 1, What: "begin", Machine: "node1", Tokens: map[string]int64{"vcs": 5}},
			{At: 4050, Job: 1, What: "end", Machine: "node1", Tokens: map[string]int64{"vcs": 5}},
			{At: 3060, Job: 2, What: "begin", Machine: "i-1"},
			{At: 4060, Job: 2, What: "end", Machine: "i-1"},
		},
		Records: []evidence.Record{
			{At: 1000, Actor: "controller/east", Kind: "resource", Subject: "vcs", Resource: "vcs", TotalAfter: 2, Shared: &evidence.Shared{Name: "vcs", Owned: 2}},
			{At: 1100, Actor: "provisioner/p1", Kind: "lease", Subject: "pool", Provider: "pool", Lease: &evidence.Lease{Provider: "pool", Holder: "p1", Epoch: 1}},
			{At: 1100, Actor: "provisioner/p1", Kind: "lease", Subject: "farm", Provider: "farm", Lease: &evidence.Lease{Provider: "farm", Holder: "p1", Epoch: 1}},
			{At: 2000, Actor: "provisioner/p1", Kind: "loan-intend", Subject: loanID, Resource: "vcs", Provider: "pool", TotalBefore: 2, TotalAfter: 2, Loan: loan("requested", 0, 0, 0)},
			{At: 2000, Actor: "provisioner/p1", Kind: "host-intend", Subject: hostID, Provider: "farm", Host: host("requested")},
			{At: 2200, Actor: "provisioner/p1", Kind: "loan-commit", Subject: loanID, Resource: "vcs", Provider: "pool", TotalBefore: 2, TotalAfter: 6, Loan: loan("borrowed", 4, 0, 0)},
			{At: 2200, Actor: "provisioner/p1", Kind: "host-expect", Subject: hostID, Provider: "farm", Host: host("expected")},
			{At: 2900, Actor: "host/small-1", Kind: "host-joined", Subject: hostID, Provider: "farm", Host: host("joined")},
			{At: 3000, Actor: "controller/east", Kind: "job", Subject: "1", Why: "placed on node1", Job: job(1, "running", "node1", 0)},
			{At: 3000, Actor: "controller/east", Kind: "job", Subject: "2", Why: "placed on small-1", Job: job(2, "running", "small-1", 0)},
			{At: 4100, Actor: "host/node1", Kind: "job", Subject: "1", Job: job(1, "done", "node1", 0)},
			{At: 4100, Actor: "host/small-1", Kind: "job", Subject: "2", Job: job(2, "done", "small-1", 0)},
			{At: 5500, Actor: "provisioner/p2", Kind: "lease", Subject: "pool", Provider: "pool", Lease: &evidence.Lease{Provider: "pool", Holder: "p2", Epoch: 2}},
			{At: 5500, Actor: "provisioner/p2", Kind: "lease", Subject: "farm", Provider: "farm", Lease: &evidence.Lease{Provider: "farm", Holder: "p2", Epoch: 2}},
			{At: 6000, Actor: "provisioner/p2", Kind: "loan-fence", Subject: loanID, Resource: "vcs", Provider: "pool", TotalBefore: 6, TotalAfter: 2, Loan: loan("returning", 0, 4, 0)},
			{At: 6200, Actor: "provisioner/p2", Kind: "loan-confirm", Subject: loanID, Resource: "vcs", Provider: "pool", TotalBefore: 2, TotalAfter: 2, Loan: loan("returned", 0, 0, 4)},
			{At: 7000, Actor: "provisioner/p2", Kind: "host-fence", Subject: hostID, Provider: "farm", Host: host("leaving")},
			{At: 7200, Actor: "provisioner/p2", Kind: "host-confirm", Subject: hostID, Provider: "farm", Host: host("returned")},
		},
		Loans:   []evidence.Loan{*loan("returned", 0, 0, 4)},
		Hosts:   []evidence.Host{*host("returned")},
		Jobs:    []evidence.Job{*job(1, "done", "node1", 0), *job(2, "done", "small-1", 0)},
		Stories: []evidence.Story{{ID: loanID, Kind: "loan", Status: "ContinuedAsNew"}, {ID: loanID, Kind: "loan", Status: "Completed"}, {ID: hostID, Kind: "host", Status: "Completed"}},
	}
	for i := range e.Records {
		e.Records[i].Revision = int64(i + 1)
	}
	return e
}

// record finds a record of a run.
func record(e *evidence.Evidence, kind, subject string) *evidence.Record {
	i := slices.IndexFunc(e.Records, func(r evidence.Record) bool { return r.Kind == kind && r.Subject == subject })
	return &e.Records[i]
}

func TestAGoodRunHasNoViolation(t *testing.T) {
	if found := Check(good()); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestAJobThatIsRequeuedWithItsMachineRunsTwice(t *testing.T) {
	e := good()
	e.Makers[0].Lines[4].Change, e.Makers[0].Lines[4].At = "crashed", 3500
	e.Marks[3] = evidence.Mark{At: 3600, Job: 2, Requeues: 1, What: "begin", Machine: "node1"}
	e.Marks = append(e.Marks, evidence.Mark{At: 3900, Job: 2, Requeues: 1, What: "end", Machine: "node1"})
	e.Jobs[1].Requeues = 1
	if found := Check(e); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// stopped is a good run but that the host of job 2 stops it, so that it ends on another.
func stopped() evidence.Evidence {
	e := good()
	waiting := *record(&e, "job", "2")
	for i, r := range e.Records {
		if r.Subject == "2" && r.Job.State == "done" {
			waiting = r
			waiting.Job = &evidence.Job{ID: 2, Name: "b", State: "waiting", Requeues: 1}
			e.Records[i] = waiting
		}
	}
	e.Marks[3] = evidence.Mark{At: 5000, Job: 2, Requeues: 1, What: "begin", Machine: "node1"}
	e.Marks = append(e.Marks, evidence.Mark{At: 5100, Job: 2, Requeues: 1, What: "end", Machine: "node1"})
	e.Jobs[1].Requeues = 1
	return e
}

func TestAJobThatItsHostStoppedRunsAgainAndItsMachineMayGoBack(t *testing.T) {
	if found := Check(stopped()); len(found) > 0 {
		t.Errorf("%v", found)
	}
	e := stopped()
	for i, r := range e.Records {
		if r.Job != nil && r.Job.State == "waiting" {
			e.Records[i].Actor = "controller/session" // not the host's word
		}
	}
	if found := Check(e); !slices.ContainsFunc(found, func(v Violation) bool { return v.Property == Fence }) {
		t.Errorf("a machine goes back of which only the controller believes that its job has ended: %v", found)
	}
}

func TestWhatIsReservedMayBeUsedBeforeItsGrantIsWritten(t *testing.T) {
	e := good()
	lines := e.Lenders[0].Lines
	granted := lines[1]
	granted.At, granted.Sequence = 6050, 3
	lines[1].Change, lines[2].Sequence = "reserved", 4
	e.Lenders[0].Lines = []evidence.LoanLine{lines[0], lines[1], granted, lines[2]}
	if found := Check(e); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// Each case is the good run with one thing wrong.
func TestEveryPropertyIsMissedWhereItDoesNotHold(t *testing.T) {
	tests := []struct {
		name  string
		want  Property
		text  string
		spoil func(e *evidence.Evidence)
	}{
		{"a grant that never came back", Forgotten, "4 units were lent and 0 are back", func(e *evidence.Evidence) {
			e.Lenders[0].Lines = e.Lenders[0].Lines[:2]
		}},
		{"units that the pool's file still lends", Forgotten, "still lends 4", func(e *evidence.Evidence) {
			e.Lenders[0].Open = []evidence.OpenGrant{{Request: loanID, Units: 4}}
		}},
		{"a machine that is still there", Forgotten, "still has it", func(e *evidence.Evidence) { e.Makers[0].Open = []string{"i-1"} }},
		{"a process of a host that is left", Forgotten, "is left", func(e *evidence.Evidence) { e.Makers[0].Left = []string{"4711 agent"} }},
		{"a loan's row that stays open", Forgotten, "returning at the end", func(e *evidence.Evidence) { e.Loans[0].State = "returning" }},
		{"a host's row that stays open", Forgotten, "leaving at the end", func(e *evidence.Evidence) { e.Hosts[0].State = "leaving" }},
		{"a journal that lacks a line", Conservation, "has number", func(e *evidence.Evidence) { e.Lenders[0].Lines[2].Sequence = 4 }},
		{"a row that says less than the lender", Conservation, "the lender 4 and 4", func(e *evidence.Evidence) { e.Loans[0].Returned = 3 }},
		{"a loan without a row", Conservation, "no row", func(e *evidence.Evidence) { e.Loans = nil }},
		{"a machine that the ledger has and no one made", Conservation, "made for", func(e *evidence.Evidence) {
			for i := range e.Records {
				if h := e.Records[i].Host; h != nil && h.Instance != "" {
					e.Records[i].Host = &evidence.Host{ID: h.ID, State: h.State, Instance: "i-9"}
				}
			}
		}},
		{"a request that is granted twice", Twice, "granted it twice", func(e *evidence.Evidence) {
			again := e.Lenders[0].Lines[1]
			again.Sequence = 4
			e.Lenders[0].Lines = append(e.Lenders[0].Lines, again)
		}},
		{"more lent than there is", Twice, "lends 4 vcs of 3", func(e *evidence.Evidence) { e.Lenders[0].Lines[0].Units = 3 }},
		{"jobs that use more than is there", Twice, "jobs use 10 vcs and 6 are there", func(e *evidence.Evidence) {
			e.Marks[2].Tokens = map[string]int64{"vcs": 5}
		}},
		{"a start that uses more than the total", Twice, "jobs use 5 of 2", func(e *evidence.Evidence) {
			record(e, "job", "1").Revision = 0
			start := *record(e, "job", "1")
			start.Revision = 4
			e.Records = slices.DeleteFunc(e.Records, func(r evidence.Record) bool { return r.Revision == 0 })
			e.Records = slices.Insert(e.Records, 3, start)
		}},
		{"a machine under two ids", Twice, "under host/small-1 and under host/small-2", func(e *evidence.Evidence) {
			r := *record(e, "host-expect", hostID)
			r.Revision, r.Subject, r.At = 99, "host/small-2", 8000
			e.Records = append(e.Records, r)
		}},
		{"a machine that is made for two requests", Twice, "made it for", func(e *evidence.Evidence) {
			l := e.Makers[0].Lines[2]
			l.Sequence, l.Request = 6, "host/small-2"
			e.Makers[0].Lines = append(e.Makers[0].Lines, l)
		}},
		{"a machine that ends twice", Twice, "had it as returned", func(e *evidence.Evidence) {
			l := e.Makers[0].Lines[4]
			l.Sequence, l.Change = 6, "crashed"
			e.Makers[0].Lines = append(e.Makers[0].Lines, l)
		}},
		{"tokens that go back while jobs use them", Twice, "jobs use 5 vcs and 2 are there", func(e *evidence.Evidence) {
			e.Marks[1].At = 6500
		}},
		{"tokens that go back before the fence", Fence, "4 units count or are in use and 0 are lent", func(e *evidence.Evidence) {
			e.Lenders[0].Lines[2].At = 5900
		}},
		{"a total that rises before the grant", Fence, "after loan-commit", func(e *evidence.Evidence) {
			record(e, "loan-commit", loanID).At = 2050
		}},
		{"a fence of what is in use", Fence, "of which jobs use 5", func(e *evidence.Evidence) {
			i := slices.IndexFunc(e.Records, func(r evidence.Record) bool { return r.Subject == "1" && r.Job.State == "done" })
			e.Records = slices.Delete(e.Records, i, i+1)
		}},
		{"a machine that goes back before the fence", Fence, "its row was joined", func(e *evidence.Evidence) { e.Makers[0].Lines[4].At = 6900 }},
		{"a machine that goes back with a job on it", Fence, "while job 2 ran on it", func(e *evidence.Evidence) { e.Marks[3].At = 7150 }},
		{"a lender that is asked before the row is there", Intent, "50 ms before", func(e *evidence.Evidence) { e.Lenders[0].Lines[1].At = 1950 }},
		{"a lender that is asked without a row", Intent, "no row was ever begun", func(e *evidence.Evidence) {
			record(e, "loan-intend", loanID).Kind = "loan-other"
		}},
		{"a maker that is asked before the row is there", Intent, "before the row", func(e *evidence.Evidence) { e.Makers[0].Lines[1].At = 1950 }},
		{"a job that runs twice", Jobs, "without being requeued", func(e *evidence.Evidence) {
			e.Marks = append(e.Marks,
				evidence.Mark{At: 5000, Job: 2, What: "begin", Machine: "node1"}, evidence.Mark{At: 5100, Job: 2, What: "end", Machine: "node1"})
		}},
		{"a job that runs at two places at once", Jobs, "while it still ran", func(e *evidence.Evidence) {
			e.Jobs[1].Requeues = 1
			e.Marks = append(e.Marks,
				evidence.Mark{At: 3500, Job: 2, Requeues: 1, What: "begin", Machine: "node1"}, evidence.Mark{At: 3600, Job: 2, Requeues: 1, What: "end", Machine: "node1"})
		}},
		{"a job that runs again and is not marked", Jobs, "was requeued 0 times", func(e *evidence.Evidence) {
			e.Marks = append(e.Marks,
				evidence.Mark{At: 5000, Job: 2, Requeues: 1, What: "begin", Machine: "node1"}, evidence.Mark{At: 5100, Job: 2, Requeues: 1, What: "end", Machine: "node1"})
		}},
		{"a job that never ends", Jobs, "never ended", func(e *evidence.Evidence) { e.Marks = slices.Delete(e.Marks, 1, 2) }},
		{"a job that never ran", Jobs, "it never ran", func(e *evidence.Evidence) { e.Marks = e.Marks[2:] }},
		{"a job that still waits", Jobs, "it is waiting", func(e *evidence.Evidence) { e.Jobs[0].State = "waiting" }},
		{"a job that is not there", Jobs, "0 jobs of that name", func(e *evidence.Evidence) {
			e.Submitted = append(e.Submitted, evidence.Submission{Name: "c"})
		}},
		{"a job that the controller does not know", Jobs, "does not know it", func(e *evidence.Evidence) { e.Marks[0].Job, e.Marks[1].Job = 9, 9 }},
		{"a total that is no sum", Totals, "the rows come to 2 and then 6", func(e *evidence.Evidence) { record(e, "loan-commit", loanID).TotalAfter = 7 }},
		{"a revision that comes twice", Totals, "follows", func(e *evidence.Evidence) { e.Records[4].Revision = 4 }},
		{"an epoch that does not rise", Epochs, "epoch 1 to p2 with epoch 1", func(e *evidence.Evidence) { e.Records[12].Lease.Epoch = 1 }},
		{"an epoch that falls", Epochs, "with epoch 0", func(e *evidence.Evidence) { e.Records[12].Lease.Epoch = 0 }},
		{"a write by who lost its lease", Epochs, "held by p2", func(e *evidence.Evidence) { record(e, "loan-fence", loanID).Actor = "provisioner/p1" }},
		{"a write while no one has the lease", Epochs, "held by no one", func(e *evidence.Evidence) { e.Records[13].Lease.Holder = "" }},
		{"a workflow that runs on", Stories, "is Running", func(e *evidence.Evidence) { e.Stories[1].Status = "Running" }},
		{"a workflow that failed", Stories, "is Failed", func(e *evidence.Evidence) { e.Stories[2].Status = "Failed" }},
		{"a row without a workflow", Stories, "no workflow of it has ended", func(e *evidence.Evidence) { e.Stories = e.Stories[:2] }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := good()
			test.spoil(&e)
			found := Check(e)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Property == test.want && strings.Contains(v.Text, test.text) }) {
				t.Errorf("want %s, %q; found %v", test.want, test.text, found)
			}
		})
	}
}

func TestATimelineTellsAllOfItsSubjectAndWhatWasNear(t *testing.T) {
	lines := Timeline(good(), Violation{At: 6100, Subject: loanID}, 200)
	text := strings.Join(lines, "\n")
	for _, want := range []string{"* 00:00:02.100 LENDER  pool granted", "* 00:00:06.000 LEDGER  15 loan-fence", "total 6 > 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if strings.Contains(text, "MAKER") || !slices.IsSortedFunc(lines, func(a, b string) int { return strings.Compare(a[2:14], b[2:14]) }) {
		t.Errorf("got\n%s", text)
	}
}

func TestFailoversAreMeasuredFromTheFault(t *testing.T) {
	e := good()
	more := *record(&e, "loan-commit", loanID)
	more.At = 8000
	e.Records = append(e.Records, more)
	times := Failovers(e)
	want := Times{LeaseMoved: {1000}, NewLoan: {3500}}
	if len(times) != 2 || !slices.Equal(times[LeaseMoved], want[LeaseMoved]) || !slices.Equal(times[NewLoan], want[NewLoan]) {
		t.Errorf("got %v, want %v", times, want)
	}
	times.Add(Times{NewLoan: {500, 100, 900}})
	if got, want := SpreadOf(times[NewLoan]), (Spread{4, 100, 500, 900, 3500}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
