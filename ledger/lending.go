package ledger

import (
	"cmp"
	"slices"

	"xce.internal/elastic/cluster"
)

// Lend opens or resizes the row of a lending; 0 units close it. Only unused
// units can be lent. The same lending again changes nothing.
func (a *Account) Lend(lending cluster.Lending, now cluster.Time) error {
	if lending.Units < 0 {
		return refuse(Invalid, "lending %s of %d units makes no sense", lending.ID, lending.Units)
	}
	i, found := slices.BinarySearchFunc(a.Lendings, lending.ID, func(l cluster.Lending, id string) int { return cmp.Compare(l.ID, id) })
	var lent int64
	lending.Since = now
	if found {
		lent, lending.Since = a.Lendings[i].Units, a.Lendings[i].Since
	}
	if more := lending.Units - lent; more > 0 && more > a.Total()-a.InUse {
		return refuse(InUse, "%d more %s cannot be lent: %d are unused", more, a.Resource, max(a.Total()-a.InUse, 0))
	}
	rows := slices.Clone(a.Lendings)
	if found {
		rows = slices.Delete(rows, i, i+1)
	}
	if lending.Units > 0 {
		rows = slices.Insert(rows, i, lending)
	}
	a.Lendings = rows
	return nil
}
