package api

import (
	"fmt"
	"strconv"
	"strings"

	"xce.internal/elastic/cluster"
)

// KindLease is the kind of the changes of leases; their subject is the provider.
const KindLease = "lease"

// LeaseHeader is where a provisioner says under which lease it makes a change.
const LeaseHeader = "Xce-Lease"

// Claim is the lease under which a provisioner makes a change.
type Claim struct {
	Provider string
	Epoch    int64
}

// String answers the claim as the header has it.
func (c Claim) String() string { return fmt.Sprintf("%s %d", c.Provider, c.Epoch) }

// ReadClaim reads a header; an empty one claims nothing.
func ReadClaim(header string) (Claim, error) {
	if header == "" {
		return Claim{}, nil
	}
	provider, number, _ := strings.Cut(header, " ")
	epoch, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !cluster.ValidName(provider) {
		return Claim{}, fmt.Errorf("header %s is not PROVIDER EPOCH, as in pool-a 7", LeaseHeader)
	}
	return Claim{provider, epoch}, nil
}

// TendLeases is what a provisioner says of itself, again and again, to get leases
// and to keep them.
type TendLeases struct {
	Instance string `json:"instance" minLength:"1" maxLength:"64" doc:"tells processes under one name apart"`
	// Owns are the providers for which it may act, Prefers those it should rather
	// have than others.
	Owns    []string `json:"owns,omitempty"`
	Prefers []string `json:"prefers,omitempty"`
	// Gives are the providers for which it acts no more.
	Gives []string `json:"gives,omitempty"`
	// Leaving tells that it is to get no more, Stops that it acts for none any more.
	Leaving bool `json:"leaving,omitempty"`
	Stops   bool `json:"stops,omitempty"`
}

// Tended is what a provisioner holds, from when it asked for so long.
type Tended struct {
	TimeToLive cluster.Duration `json:"time_to_live"`
	Leases     []HeldLease      `json:"leases"`
}

// HeldLease is a lease of the caller's.
type HeldLease struct {
	Provider string `json:"provider"`
	Epoch    int64  `json:"epoch"`
	// MoveTo is who is to have it: end what runs, then give it up.
	MoveTo string `json:"move_to,omitempty"`
}

// Leases are who is there and who holds what.
type Leases struct {
	Now          cluster.Time          `json:"now"`
	Leases       []cluster.Lease       `json:"leases"`
	Provisioners []cluster.Provisioner `json:"provisioners"`
}

// MoveLease has a lease go to a provisioner, and stay there.
type MoveLease struct {
	To string `json:"to" minLength:"1"`
}
