package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"xce.internal/elastic/scheduling"
	"xce.internal/elastic/scheduling/snapshot"
)

// discretion keeps names and sentences of people out of a record. The same name has the same hash as long as the
// writer runs.
type discretion struct{ salt []byte }

func newDiscretion() discretion {
	d := discretion{make([]byte, sha256.Size)}
	_, _ = rand.Read(d.salt) // it never fails
	return d
}

// state answers what a session judged, with hashes for names.
func (d discretion) state(name string, in scheduling.Input) (scheduling.Input, error) {
	s, err := snapshot.Hash(snapshot.Of(name, in), bytes.NewReader(d.salt))
	return s.State, err
}

// sentences are the keys of what people and providers said, or of what was made of it.
var sentences = map[string]bool{"why": true, "reason": true, "text": true}

// bare answers a value as JSON without sentences, and with hashes for who wants something.
func (d discretion) bare(value any) (json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	d.strip(tree)
	return json.Marshal(tree)
}

func (d discretion) strip(tree any) {
	switch node := tree.(type) {
	case []any:
		for _, item := range node {
			d.strip(item)
		}
	case map[string]any:
		for key, value := range node {
			text, isText := value.(string)
			switch {
			case isText && sentences[key]:
				delete(node, key)
			case isText && key == "by" && text != "":
				node[key] = d.hash(text)
			default:
				d.strip(value)
			}
		}
	}
}

func (d discretion) hash(name string) string {
	mac := hmac.New(sha256.New, d.salt)
	mac.Write([]byte(name))
	return "h" + hex.EncodeToString(mac.Sum(nil)[:8])
}
