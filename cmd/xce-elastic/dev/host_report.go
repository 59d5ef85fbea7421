package dev

import (
	"context"
	"fmt"
	"io"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/providers"
)

// hostBalance is what hosts came and went, and what was made of the time that
// was paid for.
type hostBalance struct {
	made, returned, held, listed int64
	paid, used, idle             cluster.Duration
	cost                         cluster.Price
}

func (f *farm) hostBalance(ctx context.Context) (b hostBalance, err error) {
	hosts, err := f.controller.ElasticHosts(ctx, true)
	if err != nil {
		return b, err
	}
	script, err := f.hostsOf()
	if err != nil {
		return b, err
	}
	listed, outcome := script.List(ctx)
	if outcome.Status != providers.StatusOK {
		return b, fmt.Errorf("the provider of hosts could not be asked what it still has: %s %s", outcome.Status, outcome.Message)
	}
	for _, g := range listed.Grants {
		b.listed += g.Units
	}
	for _, h := range hosts {
		b.add(h)
	}
	return b, nil
}

// add counts a host. All times are over by then: what is still there counts as held.
func (b *hostBalance) add(h cluster.ElasticHost) {
	if h.Made == 0 {
		return
	}
	b.made++
	if h.State.Open() {
		b.held++
		return
	}
	b.returned++
	paid, used := h.Paid(h.Closed), h.Used(h.Closed)
	b.paid += paid
	b.used += used
	b.cost += h.Cost(h.Closed)
	if h.Joined > 0 {
		left := h.Fenced
		if left == 0 {
			left = h.Closed
		}
		b.idle += left.Sub(h.Joined) - used
	}
}

// lost is what the provider believes we have beyond what our books hold.
func (b hostBalance) lost() int64 { return b.listed - b.held }

func (b hostBalance) print(out io.Writer) {
	seconds := func(d cluster.Duration) string { return fmt.Sprintf("%d.%d s", d/cluster.Second, d%cluster.Second/100) }
	fmt.Fprintf(out, "Hosts:   %d made, %d returned, %d held, %d lost; %s paid for: %s with jobs, %s idle, %s coming and going; cost %s.\n",
		b.made, b.returned, b.held, b.lost(), seconds(b.paid), seconds(b.used), seconds(b.idle), seconds(b.paid-b.used-b.idle), b.cost)
}

func (b hostBalance) check() error {
	switch {
	case b.lost() != 0:
		return fmt.Errorf("the provider lists %d hosts of ours, our books hold %d", b.listed, b.held)
	case b.made == 0:
		return fmt.Errorf("no host was made: the story was not told")
	case b.idle < 0 || b.paid < b.used+b.idle:
		return fmt.Errorf("%s were paid for, but %s used and %s idle", b.paid, b.used, b.idle)
	}
	return nil
}
