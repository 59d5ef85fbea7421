//go:build e2e

package dev

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/simulation/replay"
)

// written is how long a record takes at most until it is on the disk.
const written = 2 * time.Second

// TestWhatWasDecidedLiveIsDecidedAlikeInAReplay has loans and hosts come and go in a farm whose controller records
// what it decides and is killed once, and replays that with the histories of all stories.
func TestWhatWasDecidedLiveIsDecidedAlikeInAReplay(t *testing.T) {
	t.Parallel()
	recording := breeding
	recording.Cluster = strings.Replace(recording.Cluster, "  state: controller.db\n", "  state: controller.db\n  record: record\n", 1)
	f := startFarm(t, recording)
	for n := range 6 {
		f.submitOnce(t, cluster.JobSpec{Name: fmt.Sprintf("host-%d", n), CPUs: 2, Command: []string{"sleep", "1"}})
		f.submitOnce(t, cluster.JobSpec{Name: fmt.Sprintf("token-%d", n), CPUs: 1, Tokens: map[string]int64{resource: 3 + 2*int64(n%2)}, Command: []string{"sleep", "0.5"}})
		if n == 2 {
			time.Sleep(written)
			f.kill("controller")
			if err := f.startController(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	eventually(t, time.Minute, func() error { return f.hostsSettled(t.Context()) })
	for _, units := range []int64{1, 0} {
		if err := f.controller.Lend(t.Context(), "lend-1", api.LendUnits{Resource: resource, Units: units, To: neighbour}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(written)
	f.does(t, "simulate record-histories --out "+f.path("record"))
	text := f.does(t, "simulate --replay "+f.path("record")+" -o json", `"differences": \[\]`)
	var r replay.Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Kinds {
		if k.Same != k.Replayed || k.Reworded > 0 || k.Replayed < 2 {
			t.Errorf("%+v", k)
		}
	}
	if r.Missed > 0 || r.CutOff != 2 { // that of the controller that was killed, and that which is being written
		t.Errorf("%d decisions are missed, and %d files cut off", r.Missed, r.CutOff)
	}
	t.Logf("%+v", r.Kinds)
	f.does(t, "simulate --replay "+f.path("record"), `sessions +\d+ +\d+ +0 +0`, `2 files have no end`, `Every decision of the record is the one that this program makes`)
	f.refuses(t, "simulate record-histories --out "+f.path("record"), `is there already; name another folder, or remove it`)
}
