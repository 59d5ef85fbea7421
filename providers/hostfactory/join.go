package hostfactory

import (
	"encoding/base64"
	"regexp"
	"strings"
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

// named finds a token by its name, also one of before a restart.
var named = regexp.MustCompile(`(` + joinToken + `[\\"']*\s*[:=,]\s*[\\"']*)[A-Za-z0-9._~+=/\\-]+`)

// scrub hides tokens in what a plug-in says.
func (a *Adapter) scrub(text string) string {
	return named.ReplaceAllString(a.secrets.Scrub(text), "${1}"+providers.Hidden)
}

// clip keeps the beginning of a plug-in's words, as they go into histories.
func clip(text string) string {
	const longest = 4 << 10
	if len(text) > longest {
		text = strings.Clone(text[:longest])
	}
	return strings.ToValidUTF8(text, "")
}
