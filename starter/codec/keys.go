package codec

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
)

const (
	// keyBytes is the length of a key of AES-256.
	keyBytes = 32
	// longestFile is more than any file of keys has.
	longestFile = 1 << 20
)

// key is a line of a file of keys: its name, and 32 bytes in base64.
type key struct {
	id     string
	secret []byte
}

func (k key) line() string { return k.id + " " + base64.StdEncoding.EncodeToString(k.secret) }

// readKeys reads a file of keys. The first encrypts; all decrypt. What is wrong is
// told by its line, and without what stands there.
func readKeys(path string) (keys []key, err error) {
	data, err := private.ReadOwn(path, longestFile)
	if err != nil {
		return nil, fmt.Errorf("read keys: %w", err)
	}
	for n, line := range strings.Split(string(data), "\n") {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		k, err := readKey(fields)
		if err == nil && slices.ContainsFunc(keys, func(o key) bool { return o.id == k.id }) {
			err = fmt.Errorf("there is a key %s already", k.id)
		}
		if err != nil {
			return nil, fmt.Errorf("read keys: %s:%d: %w", path, n+1, err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("read keys: %s has none; make one with `xce-elastic codec keygen`", path)
	}
	return keys, nil
}

func readKey(fields []string) (key, error) {
	if len(fields) != 2 || !cluster.ValidName(fields[0]) {
		return key{}, errors.New("the line is not NAME KEY; make keys with `xce-elastic codec keygen`")
	}
	secret, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil || len(secret) != keyBytes {
		return key{}, fmt.Errorf("the key %s is not %d bytes in base64; make keys with `xce-elastic codec keygen`", fields[0], keyBytes)
	}
	return key{fields[0], secret}, nil
}

// AddKey makes a key and adds it to a file, behind those that are there: it
// decrypts, and does not encrypt yet, unless it is the first. It answers all names.
func AddKey(path string) (ids []string, err error) {
	keys, err := readKeys(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails
	name := sha256.Sum256(append([]byte("name of a key\x00"), secret...))
	return write(path, append(keys, key{hex.EncodeToString(name[:6]), secret}))
}

// UseKey has a key of a file encrypt from now on: it puts it first.
func UseKey(path, id string) (ids []string, err error) {
	keys, i, err := find(path, id)
	if err != nil {
		return nil, err
	}
	k := keys[i]
	return write(path, append([]key{k}, slices.Delete(keys, i, i+1)...))
}

// DropKey takes a key out of a file. What it encrypted is lost, wherever no other file has it.
func DropKey(path, id string) (ids []string, err error) {
	keys, i, err := find(path, id)
	if err != nil {
		return nil, err
	}
	if i == 0 {
		return nil, fmt.Errorf("the key %s encrypts; have another do so first, with `xce-elastic codec use`", id)
	}
	return write(path, slices.Delete(keys, i, i+1))
}

func find(path, id string) ([]key, int, error) {
	keys, err := readKeys(path)
	if err != nil {
		return nil, 0, err
	}
	i := slices.IndexFunc(keys, func(k key) bool { return k.id == id })
	if i < 0 {
		return nil, 0, fmt.Errorf("%s has no key %q; it has %s", path, id, strings.Join(names(keys), ", "))
	}
	return keys, i, nil
}

func names(keys []key) []string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}
	return ids
}

// write writes a file of keys whole, and answers their names.
func write(path string, keys []key) ([]string, error) {
	var text strings.Builder
	text.WriteString("# The first key encrypts, all decrypt.\n")
	for _, k := range keys {
		text.WriteString(k.line() + "\n")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // with mode 0600
	if err != nil {
		return nil, fmt.Errorf("write keys: %w", err)
	}
	_, err = f.WriteString(text.String())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return nil, fmt.Errorf("write keys: %w", err)
	}
	return names(keys), nil
}
