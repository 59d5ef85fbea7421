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
	mu     sync.Mutex
	tokens []string
}

// Hidden stands for a token.
const Hidden = "[token]"

const (
	mostSecrets = 256 // tokens that are remembered; they are short-lived

	// revealing is how many characters of a token, where a text was cut within it, are too many.
	revealing = 4
	// chance is how many characters may be the same as a token's first by chance.
	chance = 7
)

// tokenPattern keeps a token the same in JSON, in a shell's trace and in a log line, so that it is found there.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+=/-]{8,}$`)

// Add remembers a token. One that could not be found again is refused.
func (s *Secrets) Add(token string) error {
	if !tokenPattern.MatchString(token) {
		return errors.New("use at least 8 characters, only letters, digits and . _ ~ + = / -")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.tokens, token) {
		return nil
	}
	s.tokens = append(s.tokens, token)
	s.tokens = s.tokens[max(0, len(s.tokens)-mostSecrets):]
	return nil
}

// Scrub hides tokens, also where they are wrapped or cut.
func (s *Secrets) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range s.tokens {
		text = hide(text, token)
	}
	return text
}

// hide replaces a token, and beginnings of it that are too long for chance.
func hide(text, token string) string {
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); at++ {
		next := strings.IndexByte(text[at:], token[0])
		if next < 0 {
			break
		}
		at += next
		same, end := begins(text[at:], token)
		if end += at; same > chance || same >= revealing && end == len(text) {
			out.WriteString(text[done:at] + Hidden)
			done, at = end, end-1
		}
	}
	return out.String() + text[done:]
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
