package controller

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/policy"
)

// Outlook is how a host stands, for people.
type Outlook struct {
	// State is the ledger's, and finer where a host is kept or does not answer.
	State string
	// WaitsFor says what the host waits for, and Until until when; 0 where no one
	// knows. Both are empty for a host that waits for nothing.
	WaitsFor string
	Until    cluster.Time
	// Why says more of it.
	Why string
}

// kept is the state of a host that an operator keeps.
const kept = "kept"

// OutlookOf answers how a host stands. One that has not joined, or has left, has
// only its row of the ledger in h.
func OutlookOf(h api.HostStatus, now cluster.Time) Outlook {
	row := h.Elastic
	switch {
	case row == nil && h.Up:
		return Outlook{State: string(cluster.HostJoined)}
	case row == nil:
		return Outlook{State: string(cluster.Suspect), WaitsFor: "word of it", Why: heard(h)}
	case row.State == cluster.HostRequested:
		return Outlook{State: string(row.State), WaitsFor: "an answer of " + row.Provider, Why: "asked at " + row.Intended.Stamp()}
	case row.State == cluster.HostExpected:
		return Outlook{State: string(row.State), WaitsFor: "it to join", Until: row.JoinBy}
	case row.State == cluster.HostLeaving:
		return Outlook{State: string(row.State), WaitsFor: row.Provider + " to take it back", Why: row.Why + ", since " + row.Fenced.Stamp()}
	case !row.State.Here():
		return Outlook{State: string(row.State), Why: row.Why}
	case row.Health != cluster.Well:
		return Outlook{State: string(row.Health), WaitsFor: "word of it", Why: heard(h)}
	case row.Drain != nil:
		return emptying(*row.Drain, now)
	case row.Keep != nil:
		return Outlook{State: kept, WaitsFor: "its release", Why: fmt.Sprintf("kept by %s since %s: %s", row.Keep.By, row.Keep.Since.Stamp(), row.Keep.Why)}
	}
	return staying(h, now)
}

func heard(h api.HostStatus) string {
	return fmt.Sprintf("last heard of at %s, with %s on it", h.LastSeen.Stamp(), jobs(h.Jobs))
}

// jobs says how many jobs there are.
func jobs(n int64) string {
	switch n {
	case 0:
		return "no job"
	case 1:
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// emptying tells of a host that takes no new jobs.
func emptying(d cluster.Drain, now cluster.Time) Outlook {
	o := Outlook{State: string(cluster.HostDraining), WaitsFor: "its last job", Why: fmt.Sprintf("drained by %s since %s: %s", d.By, d.Since.Stamp(), d.Why)}
	switch {
	case d.Requeued > 0:
		o.Why += fmt.Sprintf("; its jobs were told to stop at %s, and wait again", d.Requeued.Stamp())
	case d.Deadline > 0 && d.Action == cluster.DrainRequeue:
		o.Until = d.Deadline
		o.Why += "; jobs that run then are stopped, and wait again"
	case d.Deadline > now:
		o.Why += fmt.Sprintf("; jobs are to end by %s, and may run on", d.Deadline.Stamp())
	case d.Deadline > 0:
		o.Why += fmt.Sprintf("; overdue: jobs were to end by %s, and may run on", d.Deadline.Stamp())
	}
	return o
}

// staying tells of a host that takes jobs: what keeps it from going back.
func staying(h api.HostStatus, now cluster.Time) Outlook {
	row, o := *h.Elastic, Outlook{State: string(cluster.HostJoined)}
	_, at := policy.ReturnHost(row, h.IdleSince, now)
	switch {
	case h.IdleSince > 0:
		o.WaitsFor, o.Until, o.Why = "its return", at, "idle since "+h.IdleSince.Stamp()
	case h.Jobs > 0:
		o.WaitsFor, o.Why = "idleness", jobs(h.Jobs)+" on it"
	default:
		o.WaitsFor, o.Why = "idleness", "a waiting job is to get it"
	}
	if now < row.HoldUntil {
		o.WaitsFor, o.Until = "the end of its minimum hold", row.HoldUntil
	}
	if end := row.LifeEnd(); end > 0 {
		o.Why += ", drained at " + end.Stamp()
	}
	return o
}

// explainHost tells why a host was made, what it waits for, and when it goes back.
// It is named by its id, or by its name in the cluster.
func (s *Service) explainHost(w *work, id string) ([]string, error) {
	h, found, err := s.findHost(w, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, refuse(http.StatusNotFound, "there is no host %q; `xce-elastic hosts --all` lists them", id)
	}
	if h.Elastic == nil {
		return explainOwned(h), nil
	}
	sentences := append(explainMade(*h.Elastic), explainStay(h, w.now)...)
	if h.Elastic.Made > 0 {
		sentences = append(sentences, explainCost(*h.Elastic, w.now))
	}
	sentences = append(sentences, hostKeptFor(h.Name, s.last.Load())...)
	past, err := w.hostHistory(*h.Elastic)
	return append(sentences, past...), err
}

// findHost finds a host by id or name: one that is here, one that was asked for,
// or at last one that was.
func (s *Service) findHost(w *work, id string) (api.HostStatus, bool, error) {
	running, err := w.Jobs(cluster.JobRunning)
	if err != nil {
		return api.HostStatus{}, false, err
	}
	var st api.Status
	if err := s.hostStatus(w, &st, running); err != nil {
		return api.HostStatus{}, false, err
	}
	for _, h := range st.Hosts {
		if h.Name == id || h.ID == id && id != "" {
			return h, true, nil
		}
	}
	for _, find := range []func(string) (cluster.ElasticHost, bool, error){w.ElasticHost, w.ElasticHostNamed} {
		if row, found, err := find(id); err != nil || found && id != "" {
			return api.HostStatus{Elastic: &row}, found, err
		}
	}
	if strings.Contains(id, "/") {
		return api.HostStatus{}, false, nil
	}
	return s.findHost(w, "host/"+id) // the last part of an id will do
}

func explainOwned(h api.HostStatus) []string {
	sentences := []string{
		fmt.Sprintf("Host %s is owned by the cluster: it joined at %s with %d cpus and %d MB, and no provider takes it back.", h.Name, h.Joined.Stamp(), h.CPUs, h.MemoryMB),
		fmt.Sprintf("It has %s; %d cpus and %d MB are free.", jobs(h.Jobs), h.FreeCPUs, h.FreeMemoryMB),
	}
	if !h.Up {
		sentences = append(sentences, fmt.Sprintf("It does not answer, and was last heard of at %s: it keeps its jobs, and gets no new ones.", h.LastSeen.Stamp()))
	}
	if h.IdleSince > 0 {
		sentences = append(sentences, fmt.Sprintf("It is idle since %s.", h.IdleSince.Stamp()))
	}
	return sentences
}

// explainMade tells why and when a host was asked for, made, and taken in.
func explainMade(row cluster.ElasticHost) []string {
	sentences := []string{fmt.Sprintf("Host %s of template %s was asked of %s at %s because %s.", row.ID, row.Template, row.Provider, row.Intended.Stamp(), ended(row.Reason))}
	if len(row.Jobs) > 0 {
		sentences = append(sentences, fmt.Sprintf("It is for %s.", jobList(row.Jobs)))
	}
	if row.Made > 0 {
		sentences = append(sentences, fmt.Sprintf("%s had made machine %s by %s.", row.Provider, row.Instance, row.Made.Stamp()))
	}
	if row.Joined > 0 {
		sentences = append(sentences, fmt.Sprintf("It joined as %s at %s with %d cpus and %d MB.", row.Name, row.Joined.Stamp(), row.CPUs, row.MemoryMB))
	}
	return sentences
}

// jobList names the first jobs of a list.
func jobList(ids []int64) string {
	const named = 5
	texts := make([]string, 0, named)
	for _, id := range ids[:min(len(ids), named)] {
		texts = append(texts, fmt.Sprint(id))
	}
	list := "job " + texts[0]
	if len(ids) > 1 {
		list = "jobs " + strings.Join(texts, ", ")
	}
	if len(ids) > named {
		list += fmt.Sprintf(" and %d more", len(ids)-named)
	}
	return list
}

// ended takes the end of a sentence off a text that goes into one.
func ended(text string) string { return strings.TrimRight(text, ". ") }

// explainStay tells what a host waits for, and when and why it goes back.
func explainStay(h api.HostStatus, now cluster.Time) []string {
	row := *h.Elastic
	switch row.State {
	case cluster.HostRequested:
		return []string{fmt.Sprintf("%s has not settled the request; the answer is awaited.", row.Provider)}
	case cluster.HostExpected:
		return []string{fmt.Sprintf("It has to join until %s; otherwise it goes back, and %s is let be for a while.", row.JoinBy.Stamp(), row.Template)}
	case cluster.HostLeaving:
		return []string{
			fmt.Sprintf("It left at %s: %s.", row.Fenced.Stamp(), ended(row.Why)),
			fmt.Sprintf("%s has not confirmed that it has the machine back; the return is repeated until it does.", row.Provider),
		}
	case cluster.HostRefused:
		return []string{fmt.Sprintf("It was closed at %s, and none was made: %s.", row.Closed.Stamp(), ended(row.Why))}
	case cluster.HostReturned:
		return []string{fmt.Sprintf("It was closed at %s: %s.", row.Closed.Stamp(), ended(row.Why))}
	}
	sentences := []string{fmt.Sprintf("It has %s; %d cpus and %d MB are free.", jobs(h.Jobs), h.FreeCPUs, h.FreeMemoryMB)}
	sentences = append(sentences, explainHealth(h)...)
	sentences = append(sentences, explainDrain(row)...)
	if row.Keep != nil {
		sentences = append(sentences, fmt.Sprintf("It is kept by %s since %s: %s; it stays, idle or not, until it is released.", row.Keep.By, row.Keep.Since.Stamp(), ended(row.Keep.Why)))
	}
	if row.Drain != nil || row.Keep != nil || row.Health != cluster.Well {
		return sentences
	}
	return append(sentences, explainReturn(h, now)...)
}

// explainHealth tells of a host that does not answer.
func explainHealth(h api.HostStatus) []string {
	row := *h.Elastic
	if row.Health == cluster.Well {
		return nil
	}
	sentences := []string{fmt.Sprintf("It does not answer, and was last heard of at %s: it keeps its jobs, and gets no new ones.", h.LastSeen.Stamp())}
	if row.Health == cluster.Suspect {
		return sentences
	}
	sentences = append(sentences, fmt.Sprintf("It counts as lost: when %s does not list the machine any more, the jobs wait again.", row.Provider))
	if row.ReturnLost {
		return append(sentences, "While it does, the host goes back with the jobs on it, which then wait again.")
	}
	return append(sentences, "While it does, the host goes back once no job is on it, since they may still run; `xce-elastic host gone` says that they do not.")
}

// explainDrain tells why a host takes no new jobs, and until when they may run.
func explainDrain(row cluster.ElasticHost) []string {
	if row.Drain == nil {
		return nil
	}
	d := *row.Drain
	sentences := []string{fmt.Sprintf("It takes no new jobs since %s, drained by %s: %s; it goes back once it is empty.", d.Since.Stamp(), d.By, ended(d.Why))}
	switch {
	case d.Requeued > 0:
		sentences = append(sentences, fmt.Sprintf("Its jobs were told to stop at %s, and wait again.", d.Requeued.Stamp()))
	case d.Deadline > 0 && d.Action == cluster.DrainRequeue:
		sentences = append(sentences, fmt.Sprintf("Jobs that still run at %s are stopped, and wait again.", d.Deadline.Stamp()))
	case d.Deadline > 0:
		sentences = append(sentences, fmt.Sprintf("Its jobs were to end by %s, and may run on.", d.Deadline.Stamp()))
	}
	if d.Forced {
		sentences = append(sentences, "The drain cannot be undone.")
	}
	return sentences
}

// explainReturn tells when a host that takes jobs goes back.
func explainReturn(h api.HostStatus, now cluster.Time) (sentences []string) {
	row := *h.Elastic
	if now < row.HoldUntil {
		sentences = append(sentences, fmt.Sprintf("Its minimum hold of %s lasts until %s: before that it does not go back.", row.MinimumHold, row.HoldUntil.Stamp()))
	}
	_, at := policy.ReturnHost(row, h.IdleSince, now)
	switch {
	case h.IdleSince > 0:
		sentences = append(sentences, fmt.Sprintf("It is idle since %s, and goes back after %s of idleness, at about %s%s.", h.IdleSince.Stamp(), row.IdleTime, at.Stamp(), stepped(row)))
	case h.Jobs > 0:
		sentences = append(sentences, fmt.Sprintf("It stays while jobs are on it, and goes back once it was idle for %s%s.", row.IdleTime, stepped(row)))
	default:
		sentences = append(sentences, fmt.Sprintf("It has no job and is not idle, since a waiting one is to get it; it goes back once it was idle for %s%s.", row.IdleTime, stepped(row)))
	}
	if end := row.LifeEnd(); end > 0 {
		sentences = append(sentences, fmt.Sprintf("At %s it will have lived for %s, and is drained.", end.Stamp(), row.MaxLifetime))
	}
	return sentences
}

func stepped(row cluster.ElasticHost) string {
	if row.BillingStep == 0 {
		return ""
	}
	return fmt.Sprintf(", shortly before a billing step of %s ends", row.BillingStep)
}

func explainCost(row cluster.ElasticHost, now cluster.Time) string {
	paid, used := row.Paid(now), row.Used(now)
	share := int64(100)
	if paid > 0 {
		share = int64(used * 100 / paid)
	}
	return fmt.Sprintf("It has been paid for %s and had jobs for %s of it, which is %d %%; at %s an hour it has cost %s.",
		seconds(paid), seconds(used), share, row.Price, row.Cost(now))
}

// seconds cuts a length of time to whole seconds.
func seconds(d cluster.Duration) cluster.Duration { return d / cluster.Second * cluster.Second }

// hostChanges says in words what the kinds of changes of a host are.
var hostChanges = map[string]string{
	api.KindHostWrite + "intend": "was asked for", api.KindHostWrite + "expect": "was made", api.KindHostWrite + "refuse": "was refused",
	api.KindHostWrite + "lapse": "was given up", api.KindHostWrite + "drain": "was drained", api.KindHostWrite + "undrain": "was opened again",
	api.KindHostWrite + "hold": "was kept", api.KindHostWrite + "release": "was released", api.KindHostWrite + "requeue": "had its jobs stopped",
	api.KindHostWrite + "fence": "left", api.KindHostWrite + "confirm": "was back", api.KindHostWrite + "gone": "was gone",
	api.KindJoined: "joined", api.KindEmptied: "was empty", api.KindSuspect: "fell silent", api.KindLost: "counted as lost", api.KindWell: "answered again",
	api.KindRefused: "was not let in",
}

// hostKeptFor tells for which jobs a host without one is kept.
func hostKeptFor(name string, last *api.Session) (sentences []string) {
	if last == nil || name == "" {
		return nil
	}
	for _, h := range last.Halves {
		if h.Host == name && len(h.Jobs) > 0 {
			sentences = append(sentences, fmt.Sprintf("The last session kept it for %s; awaited is %s.", jobList(h.Jobs), strings.Join(h.Awaits, ", ")))
		}
	}
	return sentences
}

// toldChanges is how many changes of a host are told.
const toldChanges = 10

// hostHistory tells what happened to a host last.
func (w *work) hostHistory(row cluster.ElasticHost) (sentences []string, err error) {
	var kinds []string
	for kind := range hostChanges {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	changes, err := w.History(row.ID, kinds, toldChanges)
	for _, c := range changes {
		sentence := fmt.Sprintf("At %s it %s", c.At.Stamp(), hostChanges[c.Kind])
		if c.Why != "" {
			sentence += ": " + ended(c.Why)
		}
		sentences = append(sentences, sentence+".")
	}
	return sentences, err
}

// comingFor tells which hosts that were asked for come for a waiting job.
func (w *work) comingFor(job int64) (sentences []string, err error) {
	hosts, err := w.ComingHosts()
	for _, h := range hosts {
		if !slices.Contains(h.Jobs, job) {
			continue
		}
		if h.State == cluster.HostRequested {
			sentences = append(sentences, fmt.Sprintf("Host %s was asked of %s at %s, for this job among others; the answer is awaited.", h.ID, h.Provider, h.Intended.Stamp()))
			continue
		}
		sentences = append(sentences, fmt.Sprintf("Host %s comes for this job among others; it has to join until %s.", h.ID, h.JoinBy.Stamp()))
	}
	return sentences, err
}

// requeued tells when and why a job was made to wait again.
func (w *work) requeued(job cluster.Job) (sentences []string, err error) {
	if job.Stopping {
		sentences = append(sentences, "It has been told to stop, and will wait again.")
	}
	if job.Requeues == 0 {
		return sentences, nil
	}
	changes, err := w.History(fmt.Sprint(job.ID), []string{api.KindJob}, mostOfJob)
	var told []string
	stopped := ""
	for _, c := range changes {
		if why, stops := strings.CutPrefix(c.Why, stoppedToWait); stops {
			stopped = why
		}
		if why, waits := strings.CutPrefix(c.Why, waitsAgain); waits {
			told = append(told, fmt.Sprintf("At %s it had to wait again: %s.", c.At.Stamp(), ended(cmp.Or(stopped, why))))
			stopped = ""
		}
	}
	return append(sentences, told[max(len(told)-newest, 0):]...), err
}

const (
	// stoppedToWait and waitsAgain begin the records of a job that is told to stop,
	// and of one that waits again.
	stoppedToWait = "stopped to wait again: "
	waitsAgain    = "waits again: "
	// mostOfJob is how many records of a job are looked through.
	mostOfJob = 100
)
