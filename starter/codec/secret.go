package codec

import (
	"fmt"
	"io"
	"os"
)

// longestSecret is more than any secret has.
const longestSecret = 1 << 20

// ReadSecret reads a file that only its owner can read, and refuses any other.
func ReadSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no plain file", path)
	case info.Mode().Perm()&^0o600 != 0:
		return nil, fmt.Errorf("%s has mode %04o, so that others could use what is in it; `chmod 600 %s`, and make it anew if others may have read it", path, info.Mode().Perm(), path)
	case info.Size() > longestSecret:
		return nil, fmt.Errorf("%s has %d bytes, which is no secret of ours", path, info.Size())
	}
	return io.ReadAll(io.LimitReader(f, longestSecret))
}
