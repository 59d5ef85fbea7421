package hostfactory

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"xce.internal/elastic/providers"
)

// Names under which a host finds in its user data how to join.
const (
	joinHost       = "XCE_HOST"
	joinController = "XCE_CONTROLLER"
	joinCA         = "XCE_CA" // the PEM file in base64, as plug-ins make lines of shell of these values
	joinToken      = "XCE_JOIN_TOKEN"
	joinDeadline   = "XCE_JOIN_DEADLINE"
)

// joinData is a join for the userData of a request.
func joinData(join *providers.Join) map[string]string {
	if join == nil {
		return map[string]string{}
	}
	return map[string]string{
		joinHost: join.Host, joinController: join.Controller, joinToken: join.Token, joinCA: encodeCA(join.CA),
		joinDeadline: join.Deadline.UTC().Format(time.RFC3339),
	}
}

// encodeCA adds line ends, so that the encoding needs no equals signs: plug-ins split user data there.
func encodeCA(pem string) string {
	for len(pem)%3 != 0 {
		pem += "\n"
	}
	return base64.StdEncoding.EncodeToString([]byte(pem))
}

const (
	hidden = "[token]"

	mostSecrets = 256 // tokens that are remembered; they are short-lived

	// revealing is how many characters of a token, where a text was cut within it, are too many.
	revealing = 4
	// chance is how many characters may be the same as a token's first by chance.
	chance = 7
)

// secrets are the tokens that plug-ins were told of late.
type secrets struct {
	mu     sync.Mutex
	tokens []string
}

func (s *secrets) add(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if token == "" || slices.Contains(s.tokens, token) {
		return
	}
	s.tokens = append(s.tokens, token)
	s.tokens = s.tokens[max(0, len(s.tokens)-mostSecrets):]
}

// named finds a token by its name, also one of before a restart.
var named = regexp.MustCompile(`(` + joinToken + `[\\"']*\s*[:=,]\s*[\\"']*)[A-Za-z0-9._~+=/\\-]+`)

// scrub hides tokens in what a plug-in says, also where they are wrapped or cut.
func (s *secrets) scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, token := range s.tokens {
		text = hide(text, token)
	}
	return named.ReplaceAllString(text, "${1}"+hidden)
}

// hide replaces a token, and beginnings of it that are too long for chance.
func hide(text, token string) string {
	var out strings.Builder
	done := 0
	for at := 0; at < len(text); at++ {
		if text[at] != token[0] {
			continue
		}
		same, end := begins(text[at:], token)
		if end += at; same > chance || same >= revealing && end == len(text) {
			out.WriteString(text[done:at] + hidden)
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

// clip keeps the beginning of a plug-in's words, as they go into histories.
func clip(text string) string {
	const longest = 4 << 10
	if len(text) > longest {
		text = strings.Clone(text[:longest])
	}
	return strings.ToValidUTF8(text, "")
}

// tokenPattern keeps a token the same in JSON and in a shell's trace, so that it is found there.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+=/-]{8,1000}$`)
