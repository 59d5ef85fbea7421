package simulation

import (
	"xce.internal/elastic/cluster"
	"xce.internal/elastic/workflows"
)

// operator is who gives the orders of a simulation.
const operator = "admin/operator"

// order carries out an operator's order. One that cannot be carried out changes nothing, as live; what became
// of it is among the changes.
func (s *simulator) order(o Order) {
	switch o.Do {
	case "return":
		s.orderStory(o, workflows.Message{Return: &workflows.ReturnWish{
			ReturnUnits: workflows.ReturnUnits{Units: o.Units, By: operator}, Answer: func(a workflows.ReturnAnswer) { s.ordered(o, a.Refused) },
		}})
	case "own":
		s.own(o)
	case "lend":
		s.lend(o)
	default:
		s.orderStory(o, workflows.Message{Wish: &workflows.HostWish{
			Kind:      workflows.HostUpdate(o.Do),
			HostOrder: workflows.HostOrder{By: operator, Why: o.Why, Within: o.Within, Requeue: o.Requeue},
			Answer:    func(a workflows.HostAnswer) { s.ordered(o, a.Refused) },
		}})
	}
}

func (s *simulator) orderStory(o Order, m workflows.Message) {
	st := s.stories[o.Subject]
	if st == nil {
		s.ordered(o, "there is no such loan or host now")
		return
	}
	st.tell(m)
}

// ordered keeps what became of an order.
func (s *simulator) ordered(o Order, refused string) {
	after := "done"
	if refused != "" {
		after = "refused: " + refused
	}
	s.result.Orders = append(s.result.Orders, Ordered{At: s.now, Do: o.Do, Subject: o.Subject, Became: after})
}

// own changes how many units the cluster has for good.
func (s *simulator) own(o Order) {
	r := s.resourceIndex[o.Subject]
	if r == nil {
		s.ordered(o, "there is no such resource")
		return
	}
	before := r.account.Total()
	r.account.Owned, r.Owned = o.Units, o.Units
	s.changeTotal(r, before, "owned")
	s.ordered(o, "")
}

// lend changes how many units of a resource another cluster has of us.
func (s *simulator) lend(o Order) {
	r := s.resourceIndex[o.Subject]
	if r == nil {
		s.ordered(o, "there is no such resource")
		return
	}
	before := r.account.Total()
	if free := before + r.account.Lent() - r.account.InUse; o.Units > free {
		s.ordered(o, "that many are not free")
		return
	}
	r.account.Lendings = nil
	if o.Units > 0 {
		r.account.Lendings = []cluster.Lending{{ID: "lending/" + r.Name, Resource: r.Name, Units: o.Units, To: operator, Since: s.now}}
	}
	s.changeTotal(r, before, "lent")
	s.ordered(o, "")
}
