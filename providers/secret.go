package providers

import (
	"errors"
	"regexp"
	"strings"
)

// secret is a token that the script gets to know and nobody else: in whatever the script says, [token]
// stands in its place. The zero secret hides nothing.
type secret struct{ forms []string }

const (
	hidden = "[token]"

	// revealing is how many characters of a token, where a text was cut within it, are too many.
	revealing = 4
)

// tokenPattern keeps a token the same in JSON, in a shell's trace and in a log line, so that it is found there.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+=/-]{8,}$`)

func newSecret(token string) (secret, error) {
	if !tokenPattern.MatchString(token) {
		return secret{}, errors.New("use at least 8 characters, only letters, digits and . _ ~ + = / -")
	}
	return secret{[]string{token, strings.ReplaceAll(token, "/", `\/`)}}, nil
}

// scrub hides the token, and its beginning where the text ends within it.
func (s secret) scrub(text string) string {
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, hidden)
	}
	for _, form := range s.forms {
		for n := len(form) - 1; n >= revealing; n-- {
			if strings.HasSuffix(text, form[:n]) {
				return strings.TrimSuffix(text, form[:n]) + hidden
			}
		}
	}
	return text
}
