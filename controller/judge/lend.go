package judge

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
)

// LendAnswer is what becomes of the lendings of a resource.
type LendAnswer struct {
	Lendings []cluster.Lending `json:"lendings,omitempty"`
	Refusal  *api.Refusal      `json:"refusal,omitempty"`
}

// Lend judges one lending, which is opened, resized or, with 0 units, closed.
func (b LoanBooks) Lend(lending cluster.Lending, now cluster.Time) (answer LendAnswer, err error) {
	account := b.Account()
	err = account.Lend(lending, now)
	answer.Lendings = account.Lendings
	if answer.Refusal = refusalOf(err); answer.Refusal != nil {
		err = nil
	}
	return answer, err
}
