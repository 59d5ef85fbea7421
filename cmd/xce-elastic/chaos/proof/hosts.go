package proof

import (
	"cmp"

	"xce.internal/elastic/cluster"
)

// makers holds each maker of hosts against its own journal.
func (c *court) makers() {
	of := map[string]string{}
	for _, m := range c.Makers {
		granted, gone := map[string]bool{}, map[string]string{}
		for i, l := range m.Lines {
			if l.Sequence != int64(i+1) {
				c.violated(Conservation, l.At, m.Name, "line %d of the journal has number %d", i+1, l.Sequence)
			}
			switch {
			case l.Change == "granted" && granted[l.Request]:
				c.violated(Twice, l.At, l.Request, "%s made it twice", m.Name)
			case l.Gone() && gone[l.Instance] != "":
				c.violated(Twice, l.At, l.Instance, "%s notes it as %s, and had it as %s", m.Name, l.Change, gone[l.Instance])
			}
			if l.Change == "granted" {
				granted[l.Request] = true
				if other, used := of[l.Instance]; used && other != l.Request {
					c.violated(Twice, l.At, l.Instance, "%s made it for %s and for %s", m.Name, other, l.Request)
				}
				of[l.Instance] = l.Request
			}
			if l.Gone() {
				gone[l.Instance] = l.Change
			}
		}
		for _, instance := range m.Open {
			c.violated(Forgotten, c.Ended, instance, "%s still has it", m.Name)
		}
		for _, process := range m.Left {
			c.violated(Forgotten, c.Ended, m.Name, "a process of a host is left: %s", process)
		}
	}
}

// machines holds the machines that the ledger had against those that were made.
func (c *court) machines() {
	made := map[string]string{} // request by instance
	for _, m := range c.Makers {
		for _, l := range m.Lines {
			if l.Change == "granted" {
				made[l.Instance] = l.Request
			}
		}
	}
	owner := map[string]string{}
	for _, r := range c.Records {
		if r.Host == nil || r.Host.Instance == "" {
			continue
		}
		instance, id := r.Host.Instance, r.Subject
		if other, used := owner[instance]; used && other != id {
			c.violated(Twice, r.At, instance, "it stands under %s and under %s", other, id)
		}
		if _, seen := owner[instance]; !seen && made[instance] != id {
			c.violated(Conservation, r.At, id, "the ledger has machine %s, which was made for %q", instance, made[instance])
		}
		owner[instance] = id
	}
}

// returns holds the end of each machine that was given back against its row and against the jobs on it.
func (c *court) returns() {
	state := map[string]string{}
	var events []event
	for _, r := range c.Records {
		if r.Host != nil {
			events = append(events, event{r.At, 0, func() { state[r.Subject] = r.Host.State }})
		}
	}
	runs := c.runs()
	for _, m := range c.Makers {
		for _, l := range m.Lines {
			if l.Change != "returned" {
				continue
			}
			events = append(events, event{l.At, 1, func() {
				if s := state[l.Request]; s == "joined" || s == "draining" {
					c.violated(Fence, l.At, l.Request, "machine %s went back to %s while its row was %s", l.Instance, m.Name, s)
				}
			}})
			for _, r := range runs {
				over := cmp.Or(r.end, r.stopped)
				if r.machine == l.Instance && r.begin < l.At && (over == 0 || over > l.At) {
					c.violated(Fence, l.At, l.Instance, "it went back to %s while job %d ran on it", m.Name, r.job)
				}
			}
		}
	}
	follow(events)
}

// goneAt answers when each machine ended.
func (c *court) goneAt() map[string]cluster.Time {
	gone := map[string]cluster.Time{}
	for _, m := range c.Makers {
		for _, l := range m.Lines {
			if l.Gone() {
				gone[l.Instance] = l.At
			}
		}
	}
	return gone
}
