package config

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzParse: whatever a file holds, it is taken or refused with reasons, the
// same ones each time.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		good, "", "~", "a: [", "cluster: {name: east, Name: west}", "cluster: &c {name: east}\nlog:\n  <<: *c\n",
		"resources: [~, {name: vcs, owned: 1e3, elastic: {}}]", "providers:\n- {name: a, environment: [1, x=y]}\n",
		"? [a]\n: b\n", "1: 2\ntrue: false\n", "log: {level: [debug]}", "cluster.name: east", "a: &a [*a]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse("x.yaml", data, nil)
		if (c == nil) == (err == nil) {
			t.Fatalf("configuration %v, error %v", c, err)
		}
		if err != nil && !strings.Contains(err.Error(), "x.yaml") {
			t.Fatalf("it does not say where: %v", err)
		}
		if again, err2 := parse("x.yaml", data, nil); !reflect.DeepEqual(c, again) || !reflect.DeepEqual(err, err2) {
			t.Fatalf("%+v, %v\nbecomes\n%+v, %v", c, err, again, err2)
		}
	})
}
