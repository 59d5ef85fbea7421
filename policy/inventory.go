package policy

import "fmt"

// Inventory is a provider's list of hosts beside our books, in numbers.
type Inventory struct {
	// Held is how many machines of the provider the books have, without those on
	// their way back, and Listed how many of all of them it lists.
	Held   int64 `json:"held"`
	Listed int64 `json:"listed"`
	// Missing is how many of those held it does not list, and Silent how many of
	// the missing do not answer.
	Missing int64 `json:"missing"`
	Silent  int64 `json:"silent"`
}

const (
	// emptyDoubt is how many machines make an empty list unbelievable.
	emptyDoubt = 2
	// fewMissing may be missing at once, and beyond that one of missingShare.
	fewMissing   = 3
	missingShare = 4
)

// Doubt answers why an inventory is not believed, or nothing: machines do not
// vanish all at once, lists do. That a host is silent and missing agrees; but a
// list that lacks hosts that answer is wrong.
func (i Inventory) Doubt() string {
	answering := i.Missing - i.Silent
	switch {
	case i.Held >= emptyDoubt && i.Listed == 0:
		return fmt.Sprintf("it shows none of the %d hosts that we have", i.Held)
	case answering > max(fewMissing, i.Held/missingShare):
		return fmt.Sprintf("it lacks %d of the %d hosts that we have, though they answer, which is too many at once", answering, i.Held)
	}
	return ""
}
