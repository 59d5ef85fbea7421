package store

import (
	"fmt"

	"github.com/uptrace/bun"

	"xce.internal/elastic/cluster"
)

type leaseRow struct {
	bun.BaseModel `bun:"table:leases"`

	Provider string        `bun:",pk"`
	Lease    cluster.Lease `bun:"type:json"`
}

type provisionerRow struct {
	bun.BaseModel `bun:"table:provisioners"`

	Name        string              `bun:",pk"`
	Provisioner cluster.Provisioner `bun:"type:json"`
}

// Leases lists the leases of all providers that ever had one.
func (t *Tx) Leases() ([]cluster.Lease, error) {
	return documents(t, func(r leaseRow) cluster.Lease { return r.Lease }, ordered("provider"))
}

// Lease answers the lease of a provider, or none where it never had one.
func (t *Tx) Lease(provider string) ([]cluster.Lease, error) {
	return documents(t, func(r leaseRow) cluster.Lease { return r.Lease },
		func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("provider = ?", provider) })
}

// SaveLease writes a lease.
func (t *Tx) SaveLease(l cluster.Lease) error {
	return t.save(&leaseRow{Provider: l.Provider, Lease: l}, "provider", "lease")
}

// Provisioners lists the provisioners that were heard of last.
func (t *Tx) Provisioners() ([]cluster.Provisioner, error) {
	return documents(t, func(r provisionerRow) cluster.Provisioner { return r.Provisioner }, ordered("name"))
}

// Provisioner answers the provisioner of a name, or none where there is none.
func (t *Tx) Provisioner(name string) ([]cluster.Provisioner, error) {
	return documents(t, func(r provisionerRow) cluster.Provisioner { return r.Provisioner },
		func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("name = ?", name) })
}

// SaveProvisioner writes a provisioner.
func (t *Tx) SaveProvisioner(p cluster.Provisioner) error {
	return t.save(&provisionerRow{Name: p.Name, Provisioner: p}, "name", "provisioner")
}

// DeleteProvisioner forgets a provisioner.
func (t *Tx) DeleteProvisioner(name string) error {
	if _, err := t.tx.NewDelete().Model((*provisionerRow)(nil)).Where("name = ?", name).Exec(t.ctx); err != nil {
		return fmt.Errorf("forget provisioner %s: %w", name, err)
	}
	return nil
}
