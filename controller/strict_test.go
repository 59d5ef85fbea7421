package controller

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestJSONOfDoubtfulMeaningIsRefusedWithItsPlace(t *testing.T) {
	for name, test := range map[string]struct{ text, place string }{
		"NUL":                       {`{"a":["x\u0000"]}`, "body.a[0]: the text has a NUL"},
		"NUL in a key":              {`{"a":{"\u0000":1}}`, "a key of body.a: the text has a NUL"},
		"no UTF-8":                  {"{\"a\":\"\xff\"}", "byte 6: it is not UTF-8"},
		"half a character":          {`{"a":"\ud800"}`, "byte 6: half a character"},
		"the other half":            {`{"a":"\udc00x"}`, "byte 6: half a character"},
		"two first halves":          {`{"a":"\ud800\ud800"}`, "half a character"},
		"a key twice":               {`{"a":1,"b":{"c":1,"c":2}}`, "body.b.c: the key is there twice"},
		"a key twice, in two cases": {`{"cpus":1,"CPUs":2}`, "body.CPUs: the key is there twice"},
		"the long s for an s":       {`{"cpus":1,"cpuſ":2}`, "the key is there twice"},
		"a bomb of lists":           {strings.Repeat("[", 100_000), "nested more than 32 deep"},
		"a bomb of objects":         {strings.Repeat(`{"a":`, 100_000), "nested more than 32 deep"},
		"a long number":             {`{"a":1` + strings.Repeat("0", 100) + `}`, "body.a: a number of 101 characters"},
		"a huge number":             {`{"a":1e999}`, "body.a: the number 1e999 is beyond"},
		"more after the end":        {`{} {}`, "more after the end"},
		"a brace after the end":     {`{}}`, "more after the end"},
		"cut short":                 {`{"a":[1`, "byte 7"},
		"nothing":                   {``, "byte 0"},
		"a comment":                 {`{"a":1} // x`, "more after the end"},
	} {
		t.Run(name, func(t *testing.T) {
			err := soundJSON([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.place) {
				t.Fatalf("got %v, want %q", err, test.place)
			}
			if len(err.Error()) > 500 {
				t.Errorf("it says %d bytes", len(err.Error()))
			}
		})
	}
}

func TestPlainJSONIsTakenWhateverIsInIt(t *testing.T) {
	for _, text := range []string{`{"a":"\\ud800"}`, `{"a":"\ud83d\ude00\n\t\u001b"}`, `[1,-2.5e3,true,null,"é"]`, `"x"`, `{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":1}]`} {
		if err := soundJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.MapOf(rapid.StringN(0, 20, -1).Filter(func(s string) bool {
			return !strings.ContainsRune(s, 0)
		}),
			rapid.StringN(0, 20, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, 0) })).Draw(t, "words")
		folded := map[string]bool{}
		for key := range words {
			folded[strings.ToLower(strings.ToUpper(key))] = true
		}
		data, err := json.Marshal(words)
		if err != nil {
			t.Fatal(err)
		}
		if err := soundJSON(data); err != nil && len(folded) == len(words) {
			t.Fatalf("%s: %v", data, err)
		}
	})
}
