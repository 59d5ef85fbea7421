package providers

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Secrets are the tokens that a provider was told of late and nobody else may know: in whatever it says,
// Hidden stands in their place. The zero value hides nothing.
type Secrets struct {
	mu   sync.Mutex
	told []*told // the oldest first
}

// told is a token, and how many calls that were told of it go on.
type told struct {
	token string
	calls int
}

// Hidden stands for a token.
const Hidden = "[token]"

const (
	mostSecrets = 256 // tokens that are remembered after their calls; they are short-lived

	// revealing is how many characters of a token, where a text was cut within it, are too many.
	revealing = 4
	// chance is how many characters may be the same as a token's first by chance.
	chance = 7
)

// tokenPattern keeps a token the same in JSON, in a shell's trace and in a log line, so that it is found there.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+=/-]{8,}$`)

// Hideable tells why a token could not be found again in what a provider says.
func Hideable(token string) error {
	if !tokenPattern.MatchString(token) {
		return errors.New("use at least 8 characters, only letters, digits and . _ ~ + = / -")
	}
	return nil
}

// Add remembers a token that is hideable: until done is called, and for a while after.
func (s *Secrets) Add(token string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.told, func(t *told) bool { return t.token == token })
	if i < 0 {
		i = len(s.told)
		s.told = append(s.told, &told{token: token})
	}
	t := s.told[i]
	t.calls++
	s.forget()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.calls--
	}
}

// forget drops the oldest tokens of which there are too many.
func (s *Secrets) forget() {
	for over := len(s.told) - mostSecrets; over > 0; over-- {
		i := slices.IndexFunc(s.told, func(t *told) bool { return t.calls == 0 })
		if i < 0 {
			return
		}
		s.told = slices.Delete(s.told, i, i+1)
	}
}

// Scrub hides tokens, also where they are wrapped or cut: first where they stand whole, so that the beginning
// of one, or a piece before it, takes nothing of another; then beginnings that are too long for chance.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.told {
		text = strings.ReplaceAll(text, strings.ReplaceAll(t.token, "/", `\/`), Hidden)
		text = strings.ReplaceAll(text, t.token, Hidden)
	}
	return s.hideBeginnings(text)
}

func (s *Secrets) hideBeginnings(text string) string {
	var first [256]bool
	for _, t := range s.told {
		first[t.token[0]] = true
	}
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); at++ {
		if !first[text[at]] {
			continue
		}
		if end := at + s.longest(text[at:]); end > at {
			out.WriteString(text[done:at] + Hidden)
			done, at = end, end-1
		}
	}
	return out.String() + text[done:]
}

// longest answers how much of a text, from its first character, is the beginning of a token, and so must go.
func (s *Secrets) longest(text string) (most int) {
	for _, t := range s.told {
		same, end := begins(text, t.token)
		cut := strings.TrimRight(text[end:], `\`) == ""
		if same > chance || same >= revealing && cut {
			most = max(most, end)
		}
	}
	return most
}

// begins answers how many characters of a token a text begins with, and where they end. Backslashes and
// blanks within are what a writer of JSON, a shell or a terminal put there.
func begins(text, token string) (same, end int) {
	for at := 0; at < len(text) && same < len(token); at++ {
		switch c := text[at]; {
		case c == token[same]:
			same++
			end = at + 1
		case strings.IndexByte("\\ \t\r\n", c) < 0:
			return same, end
		}
	}
	return same, end
}
