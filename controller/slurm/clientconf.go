package slurm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"xce.internal/elastic/cluster/private"
)

// DefaultMessageTimeout is how long commands wait for slurmctld, where nothing else is said.
const DefaultMessageTimeout = 2 * time.Second

const deepestInclude = 32

var (
	timeoutKey = regexp.MustCompile(`(?i)\bMessageTimeout\s*=\s*[^\s#]*`)
	includeKey = regexp.MustCompile(`(?i)^\s*Include\s+(\S+)`)
	clusterKey = regexp.MustCompile(`(?im)^\s*ClusterName\s*=\s*([^\s#]+)`)
)

// WriteClientConf writes a copy of the slurm.conf at from to the file to, for our own commands
// only: with what it includes in it, and with another MessageTimeout (0 is
// [DefaultMessageTimeout]; parts of a second are rounded up). With the one that daemons need
// each command waits some nine seconds for a slurmctld that is down. The folder of to
// must be ours alone: the other files that Slurm looks for beside slurm.conf, such as
// keys and certificates, are linked into it.
func WriteClientConf(from, to string, messageTimeout time.Duration) error {
	if messageTimeout == 0 {
		messageTimeout = DefaultMessageTimeout
	}
	seconds := int64((messageTimeout + time.Second - 1) / time.Second)
	if seconds < 1 {
		return fmt.Errorf("a MessageTimeout of %s cannot be used; write at least 1s", messageTimeout)
	}
	from, err := filepath.Abs(from)
	if err != nil {
		return fmt.Errorf("find Slurm's configuration: %w", err)
	}
	if to, err = filepath.Abs(to); err != nil {
		return fmt.Errorf("find where the copy of Slurm's configuration goes: %w", err)
	}
	if filepath.Dir(from) == filepath.Dir(to) {
		return fmt.Errorf("the copy of %s cannot be in the same folder; write it to one of ours", from)
	}
	c := confCopy{folder: filepath.Dir(from)}
	c.text.WriteString("# A copy of " + from + " for commands only; it is written anew, so change that one.\n")
	if err := c.add(from, 0); err != nil {
		return err
	}
	fmt.Fprintf(&c.text, "MessageTimeout=%d\n", seconds)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("make the folder of Slurm's configuration: %w", err)
	}
	if err := link(filepath.Dir(from), filepath.Dir(to), filepath.Base(from), filepath.Base(to)); err != nil {
		return err
	}
	if old, err := os.ReadFile(to); err == nil && string(old) == c.text.String() {
		return nil
	}
	if err := private.Replace(to, []byte(c.text.String())); err != nil {
		return fmt.Errorf("write the copy of Slurm's configuration: %w", err)
	}
	return nil
}

// confCopy is the text of a configuration without its includes.
type confCopy struct {
	text   strings.Builder
	folder string // that includes are found in
}

func (c *confCopy) add(path string, depth int) error {
	if depth > deepestInclude {
		return fmt.Errorf("%s is included more than %d deep; remove the circle", path, deepestInclude)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read Slurm's configuration: %w", err)
	}
	continued := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if m := includeKey.FindStringSubmatch(line); m != nil && !continued {
			if err := c.add(c.place(m[1]), depth+1); err != nil {
				return fmt.Errorf("%s includes %s: %w", path, m[1], err)
			}
			continue
		}
		continued = strings.HasSuffix(line, `\`)
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			line = timeoutKey.ReplaceAllString(line, "")
		}
		c.text.WriteString(line + "\n")
	}
	return nil
}

// place answers the file that an include names: beside slurm.conf where it begins with no
// slash, and %c is the cluster's name.
func (c *confCopy) place(name string) string {
	if m := clusterKey.FindStringSubmatch(c.text.String()); m != nil {
		name = strings.ReplaceAll(name, "%c", m[1])
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.folder, name)
	}
	return name
}

// besides are the kinds of files that Slurm looks for beside slurm.conf.
var besides = []string{".conf", ".key", ".pem", ".jwks"}

// link links the files beside slurm.conf into another folder, but for the named ones.
func link(from, to string, but ...string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("list what is beside Slurm's configuration: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || slices.Contains(but, name) || !slices.Contains(besides, filepath.Ext(name)) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("link what is beside Slurm's configuration: %w", err)
		}
	}
	return nil
}
