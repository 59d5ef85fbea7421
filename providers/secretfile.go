package providers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"xce.internal/elastic/cluster/private"
)

const (
	mostSecret  = 64 << 10 // bytes of one file
	leastSecret = 8        // characters that can be told from chance in what a script says
)

var variablePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckSecrets refuses secrets that no script could find, or that could not be kept: names are those of
// variables, and each file is to be its owner's alone.
func CheckSecrets(secrets, environment map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if !variablePattern.MatchString(name) {
			return fmt.Errorf("secret %q: a variable cannot be called so: use letters, digits and _", name)
		}
		if _, set := environment[name+secretSuffix]; set {
			return fmt.Errorf("secret %s: the environment sets %s%s too: remove one of them", name, name, secretSuffix)
		}
		if _, err := readSecret(name, secrets[name]); err != nil {
			return err
		}
	}
	return nil
}

// secretSuffix makes a secret's name that of the variable which says in which file it is.
const secretSuffix = "_FILE"

// readSecret answers a secret without the line end that editors leave behind it.
func readSecret(name, path string) (string, error) {
	data, err := private.Read(path, mostSecret)
	if err != nil {
		return "", fmt.Errorf("secret %s: %w", name, err)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if utf8.RuneCountInString(strings.TrimSpace(text)) < leastSecret {
		return "", fmt.Errorf("secret %s: %s has fewer than %d characters, which could not be hidden in what the script says: use a longer secret", name, path, leastSecret)
	}
	return text, nil
}

// ReadSecrets reads secrets anew for one call, and hides them from then on in whatever is scrubbed. Done
// tells that the call has ended.
func (s *Secrets) ReadSecrets(files map[string]string) (texts map[string]string, done func(), err error) {
	var ends []func()
	done = func() {
		for _, end := range ends {
			end()
		}
	}
	texts = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := readSecret(name, files[name])
		if err != nil {
			done()
			return nil, nil, err
		}
		for _, part := range parts(text) {
			ends = append(ends, s.Add(part))
		}
		texts[name] = text
	}
	return texts, done, nil
}

// parts answers what must not be seen of a secret, longest first: all of it, its lines, and what a JSON
// document has as texts; each also as writers of JSON put it.
func parts(secret string) []string {
	found := []string{secret}
	var document any
	if json.Unmarshal([]byte(secret), &document) == nil {
		found = append(found, textsIn(document)...)
	}
	for _, text := range slices.Clone(found) {
		found = append(found, strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })...)
	}
	for _, text := range slices.Clone(found) {
		quoted, _ := json.Marshal(text) // a string can always be
		ascii := strconv.QuoteToASCII(text)
		found = append(found, strings.TrimSpace(text), string(quoted[1:len(quoted)-1]), ascii[1:len(ascii)-1])
	}
	found = slices.DeleteFunc(found, func(text string) bool { return utf8.RuneCountInString(text) < leastSecret })
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(found)
}

func textsIn(document any) (texts []string) {
	switch d := document.(type) {
	case string:
		return []string{d}
	case []any:
		for _, element := range d {
			texts = append(texts, textsIn(element)...)
		}
	case map[string]any:
		for _, element := range d {
			texts = append(texts, textsIn(element)...)
		}
	}
	return texts
}

// handOver answers a file for each secret, which a child inherits as descriptors from 3 on, and sets the
// variables that say so. The files have no name, so that nothing of them is left, however we end.
func (c Command) handOver(environment map[string]string) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(c.Secrets)) {
		file, err := nameless()
		if err != nil {
			return files, fmt.Errorf("hand secret %s over: %w", name, err)
		}
		files = append(files, file)
		_, err = file.WriteString(c.Secrets[name])
		if err = errors.Join(err, file.Chmod(0o400), c.User.Own(file), seal(file)); err != nil {
			return files, fmt.Errorf("hand secret %s over: %w", name, err)
		}
		if _, err := file.Seek(0, 0); err != nil {
			return files, fmt.Errorf("hand secret %s over: %w", name, err)
		}
		environment[name+secretSuffix] = descriptors + strconv.Itoa(2+len(files))
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
