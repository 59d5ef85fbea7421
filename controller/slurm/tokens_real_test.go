package slurm

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/controller/backend"
)

func withhold(t *testing.T, b *Backend, resource string, usable int64, want backend.Resource) {
	t.Helper()
	got, err := b.Withhold(context.Background(), resource, usable)
	if got.Before = 0; err != nil || got != want {
		t.Errorf("%s, %d usable: %+v, %v; want %+v", resource, usable, got, err, want)
	}
}

func TestRealWithhold(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(nil)
	reserved := func() string {
		all, err := r.commands.Licences(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return string(rune('0'+all["foo"].Reserved)) + string(rune('0'+all["bar"].Reserved))
	}

	withhold(t, b, "vcs", 10, backend.Resource{Ceiling: 10})
	if all, err := r.commands.Reservations(context.Background()); err != nil || len(all) != 0 {
		t.Errorf("nothing is to be kept back, and there are %v, %v", all, err)
	}
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6})
	withhold(t, b, "sim", 1, backend.Resource{Ceiling: 4, Withheld: 3})
	withhold(t, b, "vcs", 2, backend.Resource{Ceiling: 10, Withheld: 8})
	withhold(t, b, "vcs", 2, backend.Resource{Ceiling: 10, Withheld: 8})
	if got := reserved(); got != "83" {
		t.Errorf("reserved are %s", got)
	}

	// A job waits for tokens that are not had, and starts as they come.
	waits := r.submit("-n1", "-L", "foo:5")
	r.until("it waits for tokens", func() bool { return r.job(waits) == "PENDING Licenses" })
	withhold(t, b, "vcs", 5, backend.Resource{Ceiling: 10, Withheld: 5})
	r.until("it runs", func() bool { return strings.HasPrefix(r.job(waits), "RUNNING") })

	// To fence: a job that slipped in just before is seen in Used, and is not hurt.
	withhold(t, b, "vcs", 8, backend.Resource{Ceiling: 10, Withheld: 2, Used: 5})
	slipped := r.submit("-n1", "-L", "foo:2")
	r.until("it runs", func() bool { return strings.HasPrefix(r.job(slipped), "RUNNING") })
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Used: 7})
	for _, id := range []string{waits, slipped} {
		if got := r.job(id); !strings.HasPrefix(got, "RUNNING") {
			t.Errorf("job %s is %s", id, got)
		}
	}

	// An update that is refused makes Slurm forget what the reservation keeps, though it
	// goes on to show it: that is seen, and put right.
	if _, err := r.try("update", "reservationname=xce-withheld.foo", "licenses=foo:11"); !IsRefused(err) {
		t.Errorf("more than the total: %v", err)
	}
	if got := reserved(); got != "03" {
		t.Errorf("reserved are %s after a refused update", got)
	}
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Used: 7})

	// What others do to it is put right: gone, of another licence, nearly over.
	r.scontrol("delete", "reservationname=xce-withheld.foo")
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Used: 7})
	r.scontrol("update", "reservationname=xce-withheld.foo", "licenses=bar:1")
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Used: 7})
	r.scontrol("update", "reservationname=xce-withheld.foo", "endtime=now+2hours")
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6, Used: 7})
	all, err := r.commands.Reservations(context.Background())
	if err != nil || len(all) != 2 || all[1].End.Sub(cluster.TimeOf(time.Now())) < renewWithin {
		t.Errorf("%+v, %v", all, err)
	}

	// Others reserve what is left: no less is kept back, and their jobs have the rest alone.
	withhold(t, b, "sim", 3, backend.Resource{Ceiling: 4, Withheld: 1})
	r.scontrol("create", "reservation", "reservationname=theirs", "starttime=now", "duration=60", "users=root", "flags=LICENSE_ONLY", "licenses=bar:2")
	withhold(t, b, "sim", 1, backend.Resource{Ceiling: 4, Withheld: 3, Reserved: 1})

	// It is there again after a crash, once Slurm has had time to write it.
	time.Sleep(time.Duration(Durable) * time.Millisecond)
	r.KillController()
	must(t, r.StartController(t.Context()))
	if got := reserved(); got != "65" {
		t.Errorf("reserved are %s after a crash", got)
	}
	late := New(Options{Commands: r.commands, Licences: b.Licences, Grace: cluster.Hour})
	var notYet *backend.NotYet
	if _, err := late.Withhold(context.Background(), "vcs", 4); !errors.As(err, &notYet) {
		t.Errorf("counts just after a start are believed: %v", err)
	}
	// A job that Slurm had not written as running yet is killed and waits again, so Used is 5 or 7.
	r.until("jobs are back", func() bool {
		got, err := b.Withhold(context.Background(), "vcs", 4)
		return err == nil && got.Withheld == 6 && got.Used >= 5
	})

	// All of it is had.
	if got, err := b.Withhold(context.Background(), "vcs", 10); err != nil || got.Withheld != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got := reserved(); got != "05" {
		t.Errorf("reserved are %s", got)
	}
}

// Reservations of others that begin later, or have begun, take nothing from what is kept back now, and their jobs take
// nothing of that.
func TestRealOthersReserveToo(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(nil)
	theirs := func(name, start, licences string) {
		r.scontrol("create", "reservation", "reservationname="+name, "starttime="+start, "duration=60", "users=root", "flags=LICENSE_ONLY", "licenses="+licences)
	}
	theirs("later", "now+1day", "foo:8")
	withhold(t, b, "vcs", 2, backend.Resource{Ceiling: 10, Withheld: 8})
	r.scontrol("delete", "reservationname=xce-withheld.foo")
	theirs("now", "now", "foo:2")
	withhold(t, b, "vcs", 3, backend.Resource{Ceiling: 10, Withheld: 7, Reserved: 2})
	withhold(t, b, "vcs", 1, backend.Resource{Ceiling: 10, Withheld: 9, Reserved: 1})
	inside := r.submit("-n1", "-t10", "-L", "foo:2", "--reservation=now")
	one := r.submit("-n1", "-t10", "-L", "foo:1", "--reservation=now")
	outside := r.submit("-n1", "-t10", "-L", "foo:1")
	r.until("the job runs that fits", func() bool { return strings.HasPrefix(r.job(one), "RUNNING") })
	for _, id := range []string{inside, outside} {
		r.until("the others wait for tokens", func() bool { return r.job(id) == "PENDING Licenses" })
	}
	withhold(t, b, "vcs", 1, backend.Resource{Ceiling: 10, Withheld: 9, Reserved: 1, Used: 1})
}

// Two controllers that do not know of each other change two licences at once.
func TestRealLicencesAreApart(t *testing.T) {
	r := startSlurm(t, oneNode)
	var both sync.WaitGroup
	for resource, total := range map[string]int64{"vcs": 10, "sim": 4} {
		b := r.backend(nil)
		both.Go(func() {
			for n := range int64(20) {
				withhold(t, b, resource, n%total, backend.Resource{Ceiling: total, Withheld: total - n%total})
			}
		})
	}
	both.Wait()
	withhold(t, r.backend(nil), "vcs", 9, backend.Resource{Ceiling: 10, Withheld: 1})
	withhold(t, r.backend(nil), "sim", 3, backend.Resource{Ceiling: 4, Withheld: 1})
}

// A total that falls below what is kept back takes the reservation with it, and a crash
// brings an older one back: each is put right.
func TestRealReservationIsLost(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(nil)
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6})
	conf, err := os.ReadFile(r.Conf())
	must(t, err)
	must(t, os.WriteFile(r.Conf(), []byte(strings.Replace(string(conf), "foo:10", "foo:5", 1)), 0o644))
	r.scontrol("reconfigure")
	r.until("the total is 5", func() bool {
		all, err := r.commands.Licences(context.Background())
		return err == nil && all["foo"].Total == 5
	})
	if all, err := r.commands.Reservations(context.Background()); err != nil || len(all) != 0 {
		t.Errorf("the reservation outlives its licences: %v, %v", all, err)
	}
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 5, Withheld: 1})
	withhold(t, b, "vcs", 0, backend.Resource{Ceiling: 5, Withheld: 5})
	r.KillController()
	must(t, r.StartController(t.Context()))
	r.until("it is put right, and what is used is believed again", func() bool {
		got, err := b.Withhold(context.Background(), "vcs", 0)
		got.Before = 0
		return err == nil && got == (backend.Resource{Ceiling: 5, Withheld: 5})
	})
}

func TestRealWithholdRefuses(t *testing.T) {
	r := startSlurm(t, oneNode)
	b := r.backend(func(o *Options) { o.Licences["nosuch"] = "nosuch" })
	for resource, want := range map[string]string{"nosuch": "licence nosuch is not in Slurm", "other": "name it under slurm.licences"} {
		if _, err := b.Withhold(context.Background(), resource, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", resource, err)
		}
	}
	if _, err := b.Withhold(context.Background(), "vcs", -1); err == nil {
		t.Error("less than nothing is usable")
	}

	// slurmctld hangs: the outcome is not known, and is what it is when it goes on.
	slow := r.backend(func(o *Options) { o.Commands.Limit = 500 * time.Millisecond })
	r.PauseController()
	_, err := slow.Withhold(context.Background(), "vcs", 4)
	r.ResumeController()
	var unknown *backend.Unknown
	if !errors.As(err, &unknown) {
		t.Errorf("%v; want an unknown outcome", err)
	}
	withhold(t, b, "vcs", 4, backend.Resource{Ceiling: 10, Withheld: 6})
}
