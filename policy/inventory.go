package policy

import "fmt"

// Inventory is a provider's list of hosts beside our books, in numbers.
type Inventory struct {
	// Held is how many machines of the provider the books have, without those on
	// their way back, and Missing how many of those it does not list.
	Held    int64 `json:"held"`
	Missing int64 `json:"missing"`
	// Listed is how many of all machines in the books it lists, and Orphans how many
	// requests that it lists the books do not have open.
	Listed  int64 `json:"listed"`
	Orphans int64 `json:"orphans"`
}

const (
	// emptyDoubt is how many machines make an empty list unbelievable.
	emptyDoubt = 2
	// fewMissing may be missing at once, and beyond that one of missingShare.
	fewMissing   = 3
	missingShare = 4
)

// Doubt answers why an inventory is not believed, given the last one that was, or
// nothing: machines do not vanish all at once, lists do.
func (i Inventory) Doubt(last Inventory) string {
	more := i.Missing - last.Missing
	switch {
	case i.Listed == 0 && last.Listed >= emptyDoubt && i.Held > 0:
		return fmt.Sprintf("it shows none of our hosts, and had %d of them before", last.Listed)
	case i.Listed == 0 && last == (Inventory{}) && i.Held >= emptyDoubt:
		return fmt.Sprintf("it shows none of the %d hosts that we have, and never had", i.Held)
	case i.Orphans-last.Orphans > max(fewMissing, i.Held/missingShare):
		return fmt.Sprintf("it shows %d hosts more than before that we do not have, beside %d that we have", i.Orphans-last.Orphans, i.Held)
	case more > max(fewMissing, i.Held/missingShare):
		return fmt.Sprintf("it lacks %d more of the %d hosts that we have than before, which is too many at once", more, i.Held)
	}
	return ""
}
