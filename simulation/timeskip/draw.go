package timeskip

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// draw is a random number that depends on the seed and on what it is for, and on
// nothing else: not on how many were drawn before, so that one more activity in one
// workflow leaves all other workflows as they were.
func draw(seed uint64, purpose ...any) uint64 {
	sum := fnv.New64a()
	for _, p := range purpose {
		fmt.Fprintf(sum, "%v\x00", p)
	}
	return rand.NewPCG(seed, sum.Sum64()).Uint64()
}

// drawDuration is in [low, high], for 0 <= low.
func drawDuration(low, high time.Duration, seed uint64, purpose ...any) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(draw(seed, purpose...)%uint64(high-low+1))
}
