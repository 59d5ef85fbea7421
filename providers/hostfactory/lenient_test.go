package hostfactory

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDocumentsAreFoundInWhateverIsPrinted(t *testing.T) {
	a := `[{"a":"1"}]`
	tests := []struct{ name, text, want string }{
		{"plain", ` {"a":"1"} `, a},
		{"behind noise", "Command bc not found!{\"a\":\"1\"}", a},
		{"between noise", "usage [OPTIONS] {x,y}\n[INFO] {\"a\":\"1\"}\ndone }", a},
		{"two", `{"a":"1"}{"b":"2"}`, `[{"a":"1"},{"b":"2"}]`},
		{"with the exit status", `[{"a":"1"}, 1]`, a},
		{"Python", `{'a': u'1'}`, a},
		{"Python words", `{'a': None, 'b': True, 'c': [False, (1,)], "d": "it's"}`, `[{"a":null,"b":true,"c":[false,[1]],"d":"it's"}]`},
		{"trailing commas", `{"a":["1",],}`, `[{"a":["1"]}]`},
		{"a missing comma", "{\"a\":\"1\"\n\"b\":\"2\"}", `[{"a":"1","b":"2"}]`},
		{"wrapped in a string", "{\"a\n\": \"1\r\n\"}", a},
		{"escapes", `{'a': '\x41\u00e4\n\'', }`, `[{"a":"Aä\n'"}]`},
		{"a surrogate pair", `x {"a":"\ud83d\ude00"}`, `[{"a":"😀"}]`},
		{"cut short", `{"a":"1"`, `null`},
		{"nothing", ``, `null`},
		{"words", `Error: no {`, `null`},
		{"numbers only", `[1] 7`, `null`},
		{"too deep", strings.Repeat("[", 5000), `null`},
		{"many openings", strings.Repeat(`{"`, 100_000), `null`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := json.Marshal(documents([]byte(test.text)))
			if err != nil || string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestJSONReadsTheSameWithNoiseAroundIt compares our reader with the library's.
func TestJSONReadsTheSameWithNoiseAroundIt(t *testing.T) {
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch n := rapid.IntRange(0, 6).Draw(t, "kind"); {
			case n == 0:
				return nil
			case n == 1:
				return rapid.Bool().Draw(t, "bool")
			case n == 2:
				return json.Number(fmt.Sprint(rapid.Int().Draw(t, "int")))
			case n == 3 || depth > 3:
				return rapid.String().Draw(t, "text")
			case n == 4:
				return rapid.SliceOfN(value(depth+1), 0, 3).Draw(t, "list")
			}
			return rapid.MapOfN(rapid.String(), value(depth+1), 0, 3).Draw(t, "object")
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		want := map[string]any{"x": value(0).Draw(t, "value")}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		strict, noisy := documents(text), documents([]byte("log: "+string(text)+" end"))
		if !reflect.DeepEqual(strict, noisy) || len(strict) != 1 {
			t.Fatalf("%s reads as %v, and with noise as %v", text, strict, noisy)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{'a': (1,), 'b': None}`, "x{\"a\":\"\\u12\"}", `[{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		docs := documents(text)
		readStatus(docs, []string{"x"})
		readReturnRequests(docs)
		readTemplates(docs)
		requestIDs(docs)
	})
}

func TestValuesAreReadHoweverTheyAreWritten(t *testing.T) {
	for _, written := range []string{`1700000000`, `"1700000000"`, `"2023-11-14T22:13:20Z"`, `"2023-11-14T22:13:20"`, `"2023-11-14 22:13:20"`, `1700000000.0`} {
		docs := documents([]byte(`{"launchTime":` + written + `}`))
		if got := instant(field(docs[0], "launchtime")); got != 1700000000_000 {
			t.Errorf("%s reads as %s", written, got)
		}
	}
	for _, nothing := range []string{`null`, `""`, `"None"`, `"0"`, `{}`, `"soon"`} {
		docs := documents([]byte(`{"launchtime":` + nothing + `}`))
		if got := instant(field(docs[0], "launchtime")); got != 0 {
			t.Errorf("%s reads as %s", nothing, got)
		}
	}
}

func TestAnEchoOfTheInputIsNoAnswer(t *testing.T) {
	docs := documents([]byte(`DEBUG in: {"requests":[{"requestId":"r"}]}` + "\n"))
	if entries := readStatus(docs, []string{"r"}); len(entries) != 0 {
		t.Errorf("%+v", entries)
	}
	docs = documents([]byte(`DEBUG in: {"machines":[{"name":"h","machineId":"i"}]}`))
	if all, answered := readReturnRequests(docs); len(all) != 0 || answered {
		t.Errorf("%+v", all)
	}
}
