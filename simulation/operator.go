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
	case "believe":
		s.orderStory(o, workflows.Message{Believe: true})
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
	id := o.Subject
	if m.Believe {
		id = workflows.ProviderID(id)
	}
	st := s.stories[id]
	if st == nil {
		s.ordered(o, "there is no such loan, host or provider now")
		return
	}
	if m.Believe {
		s.providers[o.Subject].awake(s.now - 1) // it comes before what else is at this instant
		s.ordered(o, "")
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
	s.unsettle()
	before := r.account.Total()
	r.account.Owned, r.Owned = o.Units, o.Units
	s.engine.SetOwned(r.Name, o.Units)
	for of, sh := range s.shapes { // from now on, others can never run
		sh.impossible = s.impossible(of.JobSpec)
	}
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
	s.unsettle()
	before := r.account.Total()
	if err := r.account.Lend(cluster.Lending{ID: "lending/" + r.Name, Resource: r.Name, Units: o.Units, To: operator}, s.now); err != nil {
		s.ordered(o, err.Error())
		return
	}
	s.changeTotal(r, before, "lent")
	s.ordered(o, "")
}
