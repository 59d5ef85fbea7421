package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/uptrace/bun"

	"xce.internal/elastic/cluster"
)

type elasticHostRow struct {
	bun.BaseModel `bun:"table:elastic_hosts"`

	ID       string `bun:",pk"`
	Provider string
	Template string
	Name     string
	State    cluster.HostState
	Open     bool
	Intended int64
	Host     cluster.ElasticHost `bun:"type:json"`
}

type templateRow struct {
	bun.BaseModel `bun:"table:templates"`

	Name     string `bun:",pk"`
	Provider string
	Template cluster.Template `bun:"type:json"`
}

type quotaRow struct {
	bun.BaseModel `bun:"table:quotas"`

	Provider string        `bun:",pk"`
	Name     string        `bun:",pk"`
	Quota    cluster.Quota `bun:"type:json"`
}

// JoinToken is what is kept of the one-time token of an expected host: its hash,
// and once it was used that of the key that it was used for.
type JoinToken struct {
	bun.BaseModel `bun:"table:join_tokens"`

	Host string `bun:",pk"`
	Hash string
	Key  string
}

// ElasticHosts lists the open elastic hosts of a provider, or of all for "".
func (t *Tx) ElasticHosts(provider string) ([]cluster.ElasticHost, error) {
	return t.elasticHosts(func(q *bun.SelectQuery) *bun.SelectQuery {
		q = q.Where("open = ?", true)
		if provider != "" {
			q = q.Where("provider = ?", provider)
		}
		return q.Order("id")
	})
}

// ComingHosts lists the elastic hosts that were asked for and have not joined.
func (t *Tx) ComingHosts() ([]cluster.ElasticHost, error) {
	return t.elasticHosts(func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("state IN (?)", bun.List([]cluster.HostState{cluster.HostRequested, cluster.HostExpected})).Order("id")
	})
}

// AllElasticHosts lists all elastic hosts, in the order of their intent.
func (t *Tx) AllElasticHosts() ([]cluster.ElasticHost, error) {
	hosts, err := t.elasticHosts(ordered("id"))
	slices.SortStableFunc(hosts, func(a, b cluster.ElasticHost) int { return cmp.Compare(a.Intended, b.Intended) })
	return hosts, err
}

func (t *Tx) elasticHosts(where func(*bun.SelectQuery) *bun.SelectQuery) ([]cluster.ElasticHost, error) {
	return documents(t, func(r elasticHostRow) cluster.ElasticHost { return r.Host }, where)
}

// ElasticHost reads one elastic host; found is false where there is none.
func (t *Tx) ElasticHost(id string) (host cluster.ElasticHost, found bool, err error) {
	return t.oneElasticHost(func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id = ?", id) })
}

// ElasticHostNamed reads the newest elastic host of that name, an open one first.
func (t *Tx) ElasticHostNamed(name string) (host cluster.ElasticHost, found bool, err error) {
	return t.oneElasticHost(func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("name = ?", name).Order("open DESC", "intended DESC", "id DESC").Limit(1)
	})
}

func (t *Tx) oneElasticHost(where func(*bun.SelectQuery) *bun.SelectQuery) (host cluster.ElasticHost, found bool, err error) {
	hosts, err := t.elasticHosts(where)
	if err != nil || len(hosts) == 0 {
		return host, false, err
	}
	return hosts[0], true, nil
}

// SaveElasticHost writes an elastic host.
func (t *Tx) SaveElasticHost(h cluster.ElasticHost) error {
	row := elasticHostRow{
		ID: h.ID, Provider: h.Provider, Template: h.Template, Name: h.Name, State: h.State, Open: h.State.Open(),
		Intended: int64(h.Intended), Host: h,
	}
	return t.save(&row, "id", "provider", "template", "name", "state", "open", "intended", "host")
}

// CountElasticHosts counts all elastic hosts that ever were by template, whoever
// made them: ids are numbered by template.
func (t *Tx) CountElasticHosts(templates []string) (map[string]int64, error) {
	return t.countElasticHosts(func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("template IN (?)", bun.List(templates)) })
}

// CountOpenHosts counts the elastic hosts that stand for something by template.
func (t *Tx) CountOpenHosts() (map[string]int64, error) {
	return t.countElasticHosts(func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("open = ?", true) })
}

// CountIntended counts the elastic hosts that were intended after a time and
// not refused, by template.
func (t *Tx) CountIntended(after cluster.Time) (map[string]int64, error) {
	return t.countElasticHosts(func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("intended > ? AND state <> ?", int64(after), cluster.HostRefused)
	})
}

func (t *Tx) countElasticHosts(where func(*bun.SelectQuery) *bun.SelectQuery) (map[string]int64, error) {
	var rows []struct {
		Template string
		N        int64
	}
	query := t.tx.NewSelect().Model((*elasticHostRow)(nil)).Column("template").ColumnExpr("count(*) AS n").Group("template")
	if err := where(query).Scan(t.ctx, &rows); err != nil {
		return nil, fmt.Errorf("count elastic hosts: %w", err)
	}
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.Template] = r.N
	}
	return counts, nil
}

// Templates lists what all providers can make.
func (t *Tx) Templates() ([]cluster.Template, error) {
	return documents(t, func(r templateRow) cluster.Template { return r.Template }, ordered("name"))
}

// SaveTemplate writes one template.
func (t *Tx) SaveTemplate(template cluster.Template) error {
	return t.save(&templateRow{Name: template.Name, Provider: template.Provider, Template: template}, "name", "provider", "template")
}

// DeleteTemplate removes one template.
func (t *Tx) DeleteTemplate(name string) error {
	if _, err := t.tx.NewDelete().Model((*templateRow)(nil)).Where("name = ?", name).Exec(t.ctx); err != nil {
		return fmt.Errorf("delete template %s: %w", name, err)
	}
	return nil
}

// Quotas lists what limits the providers have, by provider.
func (t *Tx) Quotas() (map[string][]cluster.Quota, error) {
	rows, err := all[quotaRow](t, ordered("provider", "name"))
	quotas := map[string][]cluster.Quota{}
	for _, r := range rows {
		quotas[r.Provider] = append(quotas[r.Provider], r.Quota)
	}
	return quotas, err
}

// ReplaceQuotas writes all limits of a provider.
func (t *Tx) ReplaceQuotas(provider string, quotas []cluster.Quota) error {
	if _, err := t.tx.NewDelete().Model((*quotaRow)(nil)).Where("provider = ?", provider).Exec(t.ctx); err != nil {
		return fmt.Errorf("replace the quotas of %s: %w", provider, err)
	}
	for _, q := range quotas {
		if err := t.save(&quotaRow{Provider: provider, Name: q.Name, Quota: q}, "provider, name", "quota"); err != nil {
			return err
		}
	}
	return nil
}

// JoinToken reads what is kept of a host's token; found is false where it has none.
func (t *Tx) JoinToken(host string) (token JoinToken, found bool, err error) {
	tokens, err := all[JoinToken](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("host = ?", host) })
	if err != nil || len(tokens) == 0 {
		return token, false, err
	}
	return tokens[0], true, nil
}

// SaveJoinToken keeps a host's token in place of an earlier one.
func (t *Tx) SaveJoinToken(token JoinToken) error { return t.save(&token, "host", "hash", "key") }

// DeleteJoinToken forgets a host's token.
func (t *Tx) DeleteJoinToken(host string) error {
	if _, err := t.tx.NewDelete().Model((*JoinToken)(nil)).Where("host = ?", host).Exec(t.ctx); err != nil {
		return fmt.Errorf("delete the join token of %s: %w", host, err)
	}
	return nil
}

// DeleteHost removes a host that has left.
func (t *Tx) DeleteHost(name string) error {
	t.mirrors.hosts.wrote(name)
	t.mirrors.idle.wrote(name)
	for _, table := range []any{(*Host)(nil), (*idleHostRow)(nil)} {
		if _, err := t.tx.NewDelete().Model(table).Where("name = ?", name).Exec(t.ctx); err != nil {
			return fmt.Errorf("delete host %s: %w", name, err)
		}
	}
	return nil
}

// IdleSince answers since when the last session found a host idle; 0 if it did not.
func (t *Tx) IdleSince(name string) (cluster.Time, error) {
	rows, err := all[idleHostRow](t, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("name = ?", name) })
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return cluster.Time(rows[0].Since), nil
}
