package guard

import (
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// watched runs a guard that notes what it kills, and when.
type watched struct {
	*Guard
	pipe   *io.PipeWriter
	mu     sync.Mutex
	killed []int
	done   chan struct{}
}

func newWatched(t *testing.T) *watched {
	out, in := io.Pipe()
	w := &watched{Guard: New(in), pipe: in, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		err := Watch(out, func(group int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.killed = append(w.killed, group)
		})
		if err != nil {
			t.Error(err)
		}
	}()
	return w
}

func (w *watched) wants(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.killed, want) {
		t.Errorf("killed %v, want %v", w.killed, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhatRunsUnderALeaseThatIsNotRenewedIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		must(t, w.Hold("p-1", 10*time.Second))
		must(t, w.Hold("q-4", time.Hour))
		ended, err := w.Run("p-1", 11)
		must(t, err)
		_, err = w.Run("p-1", 12)
		must(t, err)
		_, err = w.Run("q-4", 13)
		must(t, err)
		ended()
		time.Sleep(9 * time.Second)
		w.wants(t)
		must(t, w.Hold("p-1", 10*time.Second))
		time.Sleep(9 * time.Second)
		w.wants(t)
		time.Sleep(time.Second)
		w.wants(t, 12)
		_, err = w.Run("p-1", 14) // it began before it was known that the lease is over
		must(t, err)
		w.wants(t, 12, 14)
		w.pipe.Close()
		<-w.done
		w.wants(t, 12, 14, 13)
	})
}

func TestWhatIsLeftWhereTheOneThatRanItEndsIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		must(t, w.Hold("p-1", time.Hour))
		for _, group := range []int{9, 7, 8} {
			_, err := w.Run("p-1", group)
			must(t, err)
		}
		w.pipe.Close()
		<-w.done
		w.wants(t, 7, 8, 9)
		if err := w.Hold("p-1", time.Hour); err == nil {
			t.Error("a guard that is gone is told without a word")
		}
	})
}

func TestLinesOfAnotherFormAreLetBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t)
		must(t, w.Hold("p-1", time.Minute))
		for _, line := range []string{"", "run", "run p-1 x", "halt p-1 3", "end q 4", "run p-1 5 6"} {
			_, err := io.WriteString(w.pipe, line+"\n")
			must(t, err)
		}
		w.pipe.Close()
		<-w.done
		w.wants(t)
	})
}
