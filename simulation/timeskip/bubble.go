package timeskip

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// inBubble runs f in a synctest bubble. In a bubble, time moves only when every goroutine
// is blocked, so the real-time timers that the environment arms while it hands an
// activity to its goroutine can never win.
//
// A bubble panics at its end when goroutines in it are still blocked. The
// environment leaves one such goroutine behind for each continue-as-new; nothing can
// wake it. When these are all there is, the run is complete and the panic is taken back.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	var bubble string
	var inner *testing.T
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if !isLeak(p) {
			panic(p)
		}
		// A failed test was left in the middle: what it left behind is no news.
		if inner.Failed() {
			t.FailNow()
		}
		if foreign := leftBehind(bubble); len(foreign) > 0 {
			panic(fmt.Sprintf("timeskip: %v; close in a t.Cleanup what was opened in the run:\n\n%s",
				p, strings.Join(foreign, "\n\n")))
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		bubble, inner = bubbleName(string(stacks(false))), t
		f(t)
	})
}

func isLeak(p any) bool {
	err, ok := p.(error)
	return ok && strings.Contains(err.Error(), "main bubble goroutine has exited but blocked goroutines remain")
}

// abandonedRun is where the environment parks the goroutine of a run of a child workflow.
const abandonedRun = "internal.(*testWorkflowEnvironmentImpl).startMainLoop"

// leftBehind gives the stacks of the goroutines of a bubble that are not abandoned runs.
func leftBehind(bubble string) []string {
	var foreign []string
	for _, stack := range strings.Split(string(stacks(true)), "\n\n") {
		if bubbleName(stack) == bubble && !strings.Contains(stack, abandonedRun) {
			foreign = append(foreign, stack)
		}
	}
	return foreign
}

var bubbleInHeader = regexp.MustCompile(`^goroutine \d+ \[[^\]]*(synctest bubble \d+)`)

// bubbleName finds the bubble in the head of a goroutine's stack, or nothing.
func bubbleName(stack string) string {
	if m := bubbleInHeader.FindStringSubmatch(stack); m != nil {
		return m[1]
	}
	return ""
}

func stacks(all bool) []byte {
	for size := 1 << 16; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size {
			return buf[:n]
		}
	}
}
