package config

import (
	"fmt"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/store"
)

// leastSessionLease is the shortest time in which a controller that is well, but
// has much to do, is sure to give a sign.
const leastSessionLease = cluster.Second

// validate checks what is said of the controller among others. The address of a
// state may have a password, so it is not shown.
func (c Controller) validate() (ps cluster.Problems) {
	if store.IsShared(c.State) {
		if err := store.CheckAddress(c.State); err != nil {
			ps = append(ps, cluster.Problem{Path: "controller.state", What: "the address of the database is refused", Remedy: err.Error()})
		}
	}
	if c.Name != "" && !cluster.ValidName(c.Name) {
		ps = append(ps, cluster.Problem{Path: "controller.name", What: fmt.Sprintf("name %q is not valid", c.Name), Remedy: "use letters, digits, '.', '_' or '-'"})
	}
	if c.SessionLease < leastSessionLease {
		ps = append(ps, cluster.Problem{Path: "controller.session_lease", What: fmt.Sprintf("%s is too short", c.SessionLease), Remedy: "write at least 1s"})
	}
	return ps
}
