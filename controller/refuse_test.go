package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestOnlyAConnectionThatIsOldIsLetGo(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]string{0: "", longestConnection - time.Minute: "", longestConnection + time.Second: "close"} {
		ctx := context.WithValue(t.Context(), begunKey{}, time.Now().Add(-age))
		w := httptest.NewRecorder()
		letGo(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		if got := w.Header().Get("Connection"); got != want {
			t.Errorf("after %s the answer says %q, want %q", age, got, want)
		}
	}
	w := httptest.NewRecorder()
	letGo(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Header().Get("Connection"); got != "" {
		t.Errorf("a connection of which the begin is not known is answered %q", got)
	}
}
