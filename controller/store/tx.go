package store

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/uptrace/bun"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/scheduling"
)

// Resource is a shared resource with what the controller remembers of it.
type Resource struct {
	bun.BaseModel `bun:"table:resources"`

	Name string `bun:",pk"`
	// ConfiguredOwned is what the configuration said last, so that a changed
	// configuration is told from an owned number that was changed at run time.
	ConfiguredOwned int64
	Resource        cluster.SharedResource `bun:"type:json"`
	Idle            cluster.IdleClock      `bun:"type:json"`
}

type loanRow struct {
	bun.BaseModel `bun:"table:loans"`

	ID       string `bun:",pk"`
	Resource string
	Provider string
	State    string
	Open     bool
	Loan     cluster.Loan `bun:"type:json"`
}

type lendingRow struct {
	bun.BaseModel `bun:"table:lendings"`

	ID       string `bun:",pk"`
	Resource string
	Lending  cluster.Lending `bun:"type:json"`
}

type offerRow struct {
	bun.BaseModel `bun:"table:offers"`

	Provider string        `bun:",pk"`
	Resource string        `bun:",pk"`
	Offer    cluster.Offer `bun:"type:json"`
}

type observationRow struct {
	bun.BaseModel `bun:"table:observations"`

	Provider    string              `bun:",pk"`
	Resource    string              `bun:",pk"`
	Observation cluster.Observation `bun:"type:json"`
}

type demandRow struct {
	bun.BaseModel `bun:"table:wanted"`

	Resource string         `bun:",pk"`
	Template string         `bun:",pk"`
	Provider string         `bun:",pk"`
	Demand   cluster.Demand `bun:"type:json"`
}

// Host is a joined host and the revision at which its jobs changed last.
type Host struct {
	bun.BaseModel `bun:"table:hosts"`

	Name     string `bun:",pk"`
	Assigned int64
	Host     cluster.Host `bun:"type:json"`
}

// idleHostRow is a host that the last session found idle, and since when it is.
type idleHostRow struct {
	bun.BaseModel `bun:"table:idle_hosts"`

	Name  string `bun:",pk"`
	Since int64
}

// reservationRow is what a waiting job is promised.
type reservationRow struct {
	bun.BaseModel `bun:"table:reservations"`

	Job         int64                  `bun:",pk"`
	Reservation scheduling.Reservation `bun:"type:json"`
}

type jobRow struct {
	bun.BaseModel `bun:"table:jobs"`

	ID    int64 `bun:",pk"`
	State string
	Host  string
	Job   cluster.Job `bun:"type:json"`
}

// useRow is the tokens of one resource that one running job holds.
type useRow struct {
	bun.BaseModel `bun:"table:uses"`

	Resource string `bun:",pk"`
	Job      int64  `bun:",pk"`
	Units    int64
}

type changeRow struct {
	bun.BaseModel `bun:"table:changes"`

	Revision    int64 `bun:",pk"`
	At          int64
	Actor       string
	Kind        string
	Subject     string
	Why         string
	Resource    string
	TotalBefore int64
	TotalAfter  int64
	Before      string `bun:",nullzero"`
	After       string `bun:",nullzero"`
}

func (r changeRow) change() api.Change {
	return api.Change{
		Revision: r.Revision, At: cluster.Time(r.At), Actor: r.Actor, Kind: r.Kind, Subject: r.Subject, Why: r.Why, Resource: r.Resource,
		TotalBefore: r.TotalBefore, TotalAfter: r.TotalAfter, Before: json.RawMessage(r.Before), After: json.RawMessage(r.After),
	}
}

// save inserts or replaces one row by its key columns.
func (t *Tx) save(row any, key string, columns ...string) error {
	q := t.tx.NewInsert().Model(row).On("CONFLICT (" + key + ") DO UPDATE")
	for _, c := range columns {
		q = q.Set("? = EXCLUDED.?", bun.Ident(c), bun.Ident(c))
	}
	if _, err := q.Exec(t.ctx); err != nil {
		return fmt.Errorf("save %T: %w", row, err)
	}
	return nil
}

// all reads rows; where narrows and orders the query.
func all[T any](t *Tx, where func(*bun.SelectQuery) *bun.SelectQuery) ([]T, error) {
	var rows []T
	if err := where(t.tx.NewSelect().Model(&rows)).Scan(t.ctx); err != nil {
		return nil, fmt.Errorf("read %T: %w", rows, err)
	}
	return rows, nil
}

// documents reads rows and answers the part of each that of() picks.
func documents[T, D any](t *Tx, of func(T) D, where func(*bun.SelectQuery) *bun.SelectQuery) ([]D, error) {
	rows, err := all[T](t, where)
	docs := make([]D, 0, len(rows))
	for _, r := range rows {
		docs = append(docs, of(r))
	}
	return docs, err
}

func ordered(columns ...string) func(*bun.SelectQuery) *bun.SelectQuery {
	return func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order(columns...) }
}

// Resources lists the shared resources.
func (t *Tx) Resources() ([]Resource, error) { return all[Resource](t, ordered("name")) }

// SaveResource writes a shared resource.
func (t *Tx) SaveResource(r Resource) error {
	return t.save(&r, "name", "configured_owned", "resource", "idle")
}

// DeleteResource removes a shared resource, its demand and its offers.
func (t *Tx) DeleteResource(name string) error {
	for _, table := range []any{(*demandRow)(nil), (*offerRow)(nil), (*observationRow)(nil)} {
		if _, err := t.tx.NewDelete().Model(table).Where("resource = ?", name).Exec(t.ctx); err != nil {
			return fmt.Errorf("delete what belongs to resource %s: %w", name, err)
		}
	}
	if _, err := t.tx.NewDelete().Model((*Resource)(nil)).Where("name = ?", name).Exec(t.ctx); err != nil {
		return fmt.Errorf("delete resource %s: %w", name, err)
	}
	return nil
}

// OpenLoans lists the open loans of a resource, or of all for "".
func (t *Tx) OpenLoans(resource string) ([]cluster.Loan, error) {
	return documents(t, func(r loanRow) cluster.Loan { return r.Loan }, func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("open = ?", true)
		if resource != "" {
			q = q.Where("resource = ?", resource)
		}
		return q.Order("id")
	})
}

// Loans lists all loans, in the order of their intent.
func (t *Tx) Loans() ([]cluster.Loan, error) {
	loans, err := documents(t, func(r loanRow) cluster.Loan { return r.Loan }, ordered("id"))
	slices.SortStableFunc(loans, func(a, b cluster.Loan) int { return cmp.Compare(a.Intended, b.Intended) })
	return loans, err
}

// CountLoans counts all loans of a provider by resource.
func (t *Tx) CountLoans(provider string) (map[string]int64, error) {
	var rows []struct {
		Resource string
		N        int64
	}
	err := t.tx.NewSelect().Model((*loanRow)(nil)).Column("resource").ColumnExpr("count(*) AS n").
		Where("provider = ?", provider).Group("resource").Scan(t.ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count loans of %s: %w", provider, err)
	}
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.Resource] = r.N
	}
	return counts, nil
}

// Loan reads one loan; found is false where there is none.
func (t *Tx) Loan(id string) (loan cluster.Loan, found bool, err error) {
	var row loanRow
	err = t.tx.NewSelect().Model(&row).Where("id = ?", id).Scan(t.ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return loan, false, nil
	}
	if err != nil {
		return loan, false, fmt.Errorf("read loan %s: %w", id, err)
	}
	return row.Loan, true, nil
}

// SaveLoan writes a loan.
func (t *Tx) SaveLoan(l cluster.Loan) error {
	row := loanRow{ID: l.ID, Resource: l.Resource, Provider: l.Provider, State: string(l.State), Open: l.State.Open(), Loan: l}
	return t.save(&row, "id", "resource", "provider", "state", "open", "loan")
}

// Lendings lists the lendings of a resource, or of all for "".
func (t *Tx) Lendings(resource string) ([]cluster.Lending, error) {
	return documents(t, func(r lendingRow) cluster.Lending { return r.Lending }, func(q *bun.SelectQuery) *bun.SelectQuery {
		if resource != "" {
			q = q.Where("resource = ?", resource)
		}
		return q.Order("id")
	})
}

// ReplaceLendings writes all lendings of a resource.
func (t *Tx) ReplaceLendings(resource string, lendings []cluster.Lending) error {
	if _, err := t.tx.NewDelete().Model((*lendingRow)(nil)).Where("resource = ?", resource).Exec(t.ctx); err != nil {
		return fmt.Errorf("replace lendings of %s: %w", resource, err)
	}
	for _, l := range lendings {
		if err := t.save(&lendingRow{ID: l.ID, Resource: l.Resource, Lending: l}, "id", "resource", "lending"); err != nil {
			return err
		}
	}
	return nil
}

// Offers lists what all providers offer.
func (t *Tx) Offers() ([]cluster.Offer, error) {
	return documents(t, func(r offerRow) cluster.Offer { return r.Offer }, ordered("provider", "resource"))
}

// SaveOffer writes one offer.
func (t *Tx) SaveOffer(o cluster.Offer) error {
	return t.save(&offerRow{Provider: o.Provider, Resource: o.Resource, Offer: o}, "provider, resource", "offer")
}

// DeleteOffer removes one offer, and what its provider counted.
func (t *Tx) DeleteOffer(provider, resource string) error {
	for _, table := range []any{(*offerRow)(nil), (*observationRow)(nil)} {
		_, err := t.tx.NewDelete().Model(table).Where("provider = ? AND resource = ?", provider, resource).Exec(t.ctx)
		if err != nil {
			return fmt.Errorf("delete offer of %s by %s: %w", resource, provider, err)
		}
	}
	return nil
}

// Observations lists what licence servers counted.
func (t *Tx) Observations() ([]cluster.Observation, error) {
	return documents(t, func(r observationRow) cluster.Observation { return r.Observation }, ordered("provider", "resource"))
}

// SaveObservation writes one observation.
func (t *Tx) SaveObservation(o cluster.Observation) error {
	return t.save(&observationRow{Provider: o.Provider, Resource: o.Resource, Observation: o}, "provider, resource", "observation")
}

// Demand lists what the last session wanted, less what was intended since.
func (t *Tx) Demand() ([]cluster.Demand, error) {
	return documents(t, func(r demandRow) cluster.Demand { return r.Demand }, ordered("resource", "template", "provider"))
}

// SaveDemand writes one row of demand; 0 units remove it.
func (t *Tx) SaveDemand(d cluster.Demand) error {
	if d.Units > 0 {
		row := demandRow{Resource: d.Resource, Template: d.Template, Provider: d.Provider, Demand: d}
		return t.save(&row, "resource, template, provider", "demand")
	}
	_, err := t.tx.NewDelete().Model((*demandRow)(nil)).
		Where("resource = ? AND template = ? AND provider = ?", d.Resource, d.Template, d.Provider).Exec(t.ctx)
	if err != nil {
		return fmt.Errorf("delete demand of %s%s from %s: %w", d.Resource, d.Template, d.Provider, err)
	}
	return nil
}

// Hosts lists the hosts.
func (t *Tx) Hosts() ([]Host, error) {
	m, err := t.view()
	if err != nil {
		return nil, err
	}
	return m.hosts.all(func(names []string) (map[string]Host, error) {
		return byKey(t, names, "name", func(h Host) (string, Host) { return h.Name, h })
	})
}

// byKey reads the rows with the given keys, or all for nil.
func byKey[T any, K comparable, V any](t *Tx, keys []K, column string, of func(T) (K, V)) (map[K]V, error) {
	rows, err := all[T](t, func(q *bun.SelectQuery) *bun.SelectQuery {
		if keys != nil {
			q = q.Where("? IN (?)", bun.Ident(column), bun.List(keys))
		}
		return q
	})
	found := make(map[K]V, len(rows))
	for _, row := range rows {
		key, value := of(row)
		found[key] = value
	}
	return found, err
}

// Host reads one host; found is false where it never joined.
func (t *Tx) Host(name string) (host Host, found bool, err error) {
	hosts, err := all[Host](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("name = ?", name) })
	if err != nil || len(hosts) == 0 {
		return host, false, err
	}
	return hosts[0], true, nil
}

// MarkAssigned marks the revision at which a host's jobs changed.
func (t *Tx) MarkAssigned(name string, revision int64) error {
	t.mirrors.hosts.wrote(name)
	_, err := t.tx.NewUpdate().Model((*Host)(nil)).Set("assigned = ?", revision).Where("name = ?", name).Exec(t.ctx)
	if err != nil {
		return fmt.Errorf("mark host %s: %w", name, err)
	}
	return nil
}

// IdleHosts answers the hosts that the last session found idle, and since when.
func (t *Tx) IdleHosts() (map[string]cluster.Time, error) {
	m, err := t.view()
	if err != nil {
		return nil, err
	}
	err = m.idle.refresh(func(names []string) (map[string]cluster.Time, error) {
		return byKey(t, names, "name", func(r idleHostRow) (string, cluster.Time) { return r.Name, cluster.Time(r.Since) })
	})
	return maps.Clone(m.idle.rows), err
}

// MarkIdle marks since when a host is idle; 0 says that it is not.
func (t *Tx) MarkIdle(name string, since cluster.Time) error {
	t.mirrors.idle.wrote(name)
	if since != 0 {
		return t.save(&idleHostRow{Name: name, Since: int64(since)}, "name", "since")
	}
	if _, err := t.tx.NewDelete().Model((*idleHostRow)(nil)).Where("name = ?", name).Exec(t.ctx); err != nil {
		return fmt.Errorf("mark host %s: %w", name, err)
	}
	return nil
}

// Reservations lists the reservations that stand.
func (t *Tx) Reservations() ([]scheduling.Reservation, error) {
	return documents(t, func(r reservationRow) scheduling.Reservation { return r.Reservation }, ordered("job"))
}

// SaveReservation writes what a job is promised.
func (t *Tx) SaveReservation(r scheduling.Reservation) error {
	return t.save(&reservationRow{Job: r.Job, Reservation: r}, "job", "reservation")
}

// DeleteReservation removes what a job was promised.
func (t *Tx) DeleteReservation(job int64) error {
	if _, err := t.tx.NewDelete().Model((*reservationRow)(nil)).Where("job = ?", job).Exec(t.ctx); err != nil {
		return fmt.Errorf("delete the reservation of job %d: %w", job, err)
	}
	return nil
}

// SaveHost writes a host.
func (t *Tx) SaveHost(h Host) error {
	t.mirrors.hosts.wrote(h.Name)
	return t.save(&h, "name", "assigned", "host")
}

// Jobs lists the jobs in one of the states, or all for none.
func (t *Tx) Jobs(states ...cluster.JobState) ([]cluster.Job, error) {
	if len(states) == 1 && !states[0].Ended() {
		return t.liveJobs(states[0])
	}
	return t.jobs(func(q *bun.SelectQuery) *bun.SelectQuery {
		if len(states) > 0 {
			q = q.Where("state IN (?)", bun.List(states))
		}
		return q
	})
}

// liveJobs lists the jobs in a state that is not their last.
func (t *Tx) liveJobs(state cluster.JobState) ([]cluster.Job, error) {
	m, err := t.view()
	if err != nil {
		return nil, err
	}
	live, err := m.jobs.all(func(ids []int64) (map[int64]cluster.Job, error) {
		jobs, err := t.jobs(func(q *bun.SelectQuery) *bun.SelectQuery {
			if ids != nil {
				q = q.Where("id IN (?)", bun.List(ids))
			}
			return q.Where("state IN (?)", bun.List([]cluster.JobState{cluster.JobWaiting, cluster.JobRunning}))
		})
		found := make(map[int64]cluster.Job, len(jobs))
		for _, job := range jobs {
			found[job.ID] = job
		}
		return found, err
	})
	return slices.DeleteFunc(live, func(j cluster.Job) bool { return j.State != state }), err
}

// HostJobs lists the running jobs of a host.
func (t *Tx) HostJobs(host string) ([]cluster.Job, error) {
	return t.jobs(func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("state = ? AND host = ?", cluster.JobRunning, host)
	})
}

// Job reads one job; found is false where there is none.
func (t *Tx) Job(id int64) (job cluster.Job, found bool, err error) {
	jobs, err := t.jobs(func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id = ?", id) })
	if err != nil || len(jobs) == 0 {
		return job, false, err
	}
	return jobs[0], true, nil
}

func (t *Tx) jobs(where func(*bun.SelectQuery) *bun.SelectQuery) ([]cluster.Job, error) {
	return documents(t, func(r jobRow) cluster.Job { return r.Job },
		func(q *bun.SelectQuery) *bun.SelectQuery { return where(q).Order("id") })
}

// CountJobs counts the jobs by state.
func (t *Tx) CountJobs() (map[cluster.JobState]int64, error) {
	var rows []struct {
		State cluster.JobState
		N     int64
	}
	err := t.tx.NewSelect().Model((*jobRow)(nil)).Column("state").ColumnExpr("count(*) AS n").Group("state").Scan(t.ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	counts := map[cluster.JobState]int64{}
	for _, r := range rows {
		counts[r.State] = r.N
	}
	return counts, nil
}

// AddJob writes a new job and gives it its number.
func (t *Tx) AddJob(job *cluster.Job) error {
	id, err := t.number(&t.job, (*jobRow)(nil), "id")
	if err != nil {
		return fmt.Errorf("add job: %w", err)
	}
	job.ID = id
	return t.SaveJob(*job)
}

// SaveJob writes a job, and what it uses from its start to its end.
func (t *Tx) SaveJob(job cluster.Job) error {
	t.mirrors.jobs.wrote(job.ID)
	err := t.save(&jobRow{ID: job.ID, State: string(job.State), Host: job.Host, Job: job}, "id", "state", "host", "job")
	switch {
	case err != nil:
		return err
	case job.State == cluster.JobRunning:
		tokens := job.TokensTaken(job.Alternative)
		for _, name := range slices.Sorted(maps.Keys(tokens)) {
			if err := t.save(&useRow{Resource: name, Job: job.ID, Units: tokens[name]}, "resource, job", "units"); err != nil {
				return err
			}
		}
	case job.State.Ended() || job.Requeues > 0:
		if _, err := t.tx.NewDelete().Model((*useRow)(nil)).Where("job = ?", job.ID).Exec(t.ctx); err != nil {
			return fmt.Errorf("free the tokens of job %d: %w", job.ID, err)
		}
	}
	return nil
}

// InUse sums the units of a resource that running jobs hold.
func (t *Tx) InUse(resource string) (units int64, err error) {
	err = t.tx.NewSelect().Model((*useRow)(nil)).ColumnExpr("CAST(coalesce(sum(units), 0) AS BIGINT)").Where("resource = ?", resource).Scan(t.ctx, &units)
	if err != nil {
		return 0, fmt.Errorf("sum what is in use of %s: %w", resource, err)
	}
	return units, nil
}

// number answers the next number of a table. Only one transaction writes at a
// time, so that there are no gaps and no two are the same.
func (t *Tx) number(last *int64, table any, column string) (int64, error) {
	if *last == 0 {
		err := t.tx.NewSelect().Model(table).ColumnExpr("coalesce(max(?), 0)", bun.Ident(column)).Scan(t.ctx, last)
		if err != nil {
			return 0, err
		}
	}
	*last++
	return *last, nil
}

// Append adds an audit record and answers its revision.
func (t *Tx) Append(c api.Change) (int64, error) {
	revision, err := t.number(&t.revision, (*changeRow)(nil), "revision")
	if err != nil {
		return 0, fmt.Errorf("append change %s %s: %w", c.Kind, c.Subject, err)
	}
	row := changeRow{
		Revision: revision, At: int64(c.At), Actor: c.Actor, Kind: c.Kind, Subject: c.Subject, Why: c.Why, Resource: c.Resource,
		TotalBefore: c.TotalBefore, TotalAfter: c.TotalAfter, Before: string(c.Before), After: string(c.After),
	}
	if _, err := t.tx.NewInsert().Model(&row).Exec(t.ctx); err != nil {
		return 0, fmt.Errorf("append change %s %s: %w", c.Kind, c.Subject, err)
	}
	return row.Revision, nil
}

// History lists the audit records of one subject, the newest `limit` of those
// of the kinds, oldest first.
func (t *Tx) History(subject string, kinds []string, limit int64) ([]api.Change, error) {
	changes, err := documents(t, changeRow.change, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("subject = ?", subject).Where("kind IN (?)", bun.List(kinds)).Order("revision DESC").Limit(limit)
	})
	slices.Reverse(changes)
	return changes, err
}

// Changes lists at most `limit` audit records after a revision.
func (t *Tx) Changes(after, limit int64) ([]api.Change, error) {
	return documents(t, changeRow.change, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("revision > ?", after).Order("revision").Limit(limit)
	})
}

// Revision answers the newest revision.
func (t *Tx) Revision() (int64, error) {
	var revision int64
	err := t.tx.NewSelect().Model((*changeRow)(nil)).ColumnExpr("coalesce(max(revision), 0)").Scan(t.ctx, &revision)
	if err != nil {
		return 0, fmt.Errorf("read revision: %w", err)
	}
	return revision, nil
}
