// Package guard ends scripts whose lease is over where the process that runs
// them cannot: it was stopped, or has ended. A guard is a process of its own,
// which is told on its standard input what runs and until when it may.
//
// A line is one of
//
//	hold LEASE MILLISECONDS   what runs under the lease may for so long from now
//	run LEASE GROUP           a script has begun; GROUP is its process group
//	end LEASE GROUP           it has ended
//
// When the input ends, everything that still runs is ended.
package guard

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Watch reads what it is told until the input ends, and calls kill for each
// process group that may run no longer. Lines that it does not know are let be.
func Watch(in io.Reader, kill func(group int)) error {
	lines := make(chan string)
	failed := make(chan error, 1)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		failed <- scanner.Err()
	}()
	w := watch{leases: map[string]*lease{}, kill: kill}
	for {
		wake := time.NewTimer(w.next())
		select {
		case line, more := <-lines:
			wake.Stop()
			if !more {
				w.endAll()
				return <-failed
			}
			w.told(line)
		case <-wake.C:
		}
		w.expire(time.Now())
	}
}

// lease is what is known of one.
type lease struct {
	until  time.Time
	groups map[int]bool
}

type watch struct {
	leases map[string]*lease
	kill   func(int)
}

// idle is how long the guard sleeps where it holds no lease.
const idle = time.Hour

// next answers how long nothing is to be done.
func (w *watch) next() time.Duration {
	next := idle
	for _, l := range w.leases {
		next = min(next, time.Until(l.until))
	}
	return max(next, 0)
}

func (w *watch) told(line string) {
	words := strings.Fields(line)
	if len(words) != 3 {
		return
	}
	number, err := strconv.Atoi(words[2])
	if err != nil {
		return
	}
	l, known := w.leases[words[1]]
	switch words[0] {
	case "hold":
		if !known {
			l = &lease{groups: map[int]bool{}}
			w.leases[words[1]] = l
		}
		l.until = time.Now().Add(time.Duration(number) * time.Millisecond)
	case "run":
		if !known { // it was over before this was read
			w.kill(number)
			return
		}
		l.groups[number] = true
	case "end":
		if known {
			delete(l.groups, number)
		}
	}
}

// expire ends what runs under leases that are over.
func (w *watch) expire(now time.Time) {
	for name, l := range w.leases {
		if !now.Before(l.until) {
			w.end(l)
			delete(w.leases, name)
		}
	}
}

func (w *watch) endAll() {
	for _, l := range w.leases {
		w.end(l)
	}
}

func (w *watch) end(l *lease) {
	for _, group := range slices.Sorted(maps.Keys(l.groups)) {
		w.kill(group)
	}
}

// Guard tells a guard's process what to watch.
type Guard struct{ to io.Writer }

// New answers a guard that is told through a pipe.
func New(to io.Writer) *Guard { return &Guard{to} }

// Hold tells for how long what runs under a lease may, from now.
func (g *Guard) Hold(lease string, d time.Duration) error {
	return g.tell("hold", lease, d.Milliseconds())
}

// Run tells that a script has begun under a lease; the answered function, that it has ended.
func (g *Guard) Run(lease string, group int) (ended func(), err error) {
	return func() { _ = g.tell("end", lease, int64(group)) }, g.tell("run", lease, int64(group))
}

// tell writes one line at once, so that those of several scripts do not mix.
func (g *Guard) tell(verb, lease string, number int64) error {
	if _, err := fmt.Fprintf(g.to, "%s %s %d\n", verb, lease, number); err != nil {
		return fmt.Errorf("tell the guard of scripts: %w", err)
	}
	return nil
}
