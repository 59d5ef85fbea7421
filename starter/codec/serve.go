package codec

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
)

// longestRequest limits what is to be decrypted at once.
const longestRequest = 16 << 20

// Access says who may have payloads decrypted.
type Access struct {
	// Origins are those of the web pages that may, such as that of the Temporal UI.
	Origins []string
	// Token is what callers must bear; empty lets in whoever reaches the address.
	Token string
}

// Handler answers the endpoint that the Temporal UI decrypts payloads with. It
// encrypts nothing: who may read may not give orders.
func Handler(c *Codec, access Access) http.Handler {
	decode := converter.NewPayloadCodecHTTPHandler(c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		w.Header().Set("Vary", "Origin")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case r.URL.Path != "/decode":
			http.NotFound(w, r)
		case origin != "" && !slices.Contains(access.Origins, origin):
			http.Error(w, "pages of this origin may not have payloads decrypted", http.StatusForbidden)
		default:
			allow(w.Header(), origin)
			switch {
			case r.Method == http.MethodOptions:
				w.WriteHeader(http.StatusNoContent)
			case r.Method != http.MethodPost:
				http.Error(w, "POST payloads", http.StatusMethodNotAllowed)
			case !access.bears(r):
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
			default:
				r.Body = http.MaxBytesReader(w, r.Body, longestRequest)
				decode.ServeHTTP(w, r)
			}
		}
	})
}

// allow lets pages of an origin read the answer.
func allow(h http.Header, origin string) {
	if origin == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, X-Namespace, Authorization")
	h.Set("Access-Control-Max-Age", "600")
}

// bears tells whether a request has the token.
func (a Access) bears(r *http.Request) bool {
	if a.Token == "" {
		return true
	}
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(a.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
