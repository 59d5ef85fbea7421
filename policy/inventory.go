package policy

import "fmt"

// Inventory is a provider's list of hosts beside our books, in numbers.
type Inventory struct {
	// Held is how many machines of the provider the books have, and Missing how
	// many of those it does not list.
	Held    int64 `json:"held"`
	Missing int64 `json:"missing"`
}

const (
	// emptyDoubt is how many machines make an empty list unbelievable.
	emptyDoubt = 2
	// fewMissing may be missing at once, and beyond that one of missingShare.
	fewMissing   = 3
	missingShare = 4
)

// Doubt answers why an inventory is not believed, or nothing: machines do not
// vanish all at once, lists do.
func (i Inventory) Doubt() string {
	switch {
	case i.Held >= emptyDoubt && i.Missing >= i.Held:
		return fmt.Sprintf("it shows none of the %d hosts that we have", i.Held)
	case i.Missing > max(fewMissing, i.Held/missingShare):
		return fmt.Sprintf("it lacks %d of the %d hosts that we have, which is too many at once", i.Missing, i.Held)
	}
	return ""
}
