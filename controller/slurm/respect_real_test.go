package slurm

import (
	"testing"

	"xce.internal/elastic/controller/backend"
)

// What we keep back ourselves is not taken for what someone else has added.
func TestRealRespectCountsOursAsOurs(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(func(o *Options) { o.Respect = true })
	withhold(t, b, "vcs", 8, backend.Resource{Ceiling: 10, Withheld: 2})
	withhold(t, b, "vcs", 6, backend.Resource{Ceiling: 10, Withheld: 4})
	r.scontrol("update", "reservationname=xce-withheld.foo", "licenses=foo:6") // someone else adds two
	withhold(t, b, "vcs", 6, backend.Resource{Ceiling: 10, Withheld: 4, Reserved: 2})
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Reserved: 2})
	withhold(t, b, "vcs", 8, backend.Resource{Ceiling: 10, Withheld: 2, Reserved: 2})
}
