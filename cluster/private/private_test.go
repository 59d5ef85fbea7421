package private_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xce.internal/elastic/cluster/private"
)

// file makes a file of a mode.
func file(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestAGivenFileThatOthersCanReadIsRefusedWithTheRemedy(t *testing.T) {
	for mode, fine := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o440: true, 0o644: false, 0o604: false, 0o602: false, 0o601: false, 0o660: false, 0o666: false} {
		path := file(t, mode)
		text, readErr := private.Read(path, 100)
		for _, err := range []error{private.Check(path), readErr} {
			if (err == nil) != fine {
				t.Errorf("%04o: %v", mode, err)
			}
			if err != nil && (!strings.Contains(err.Error(), fmt.Sprintf("mode %04o", mode)) || !strings.Contains(err.Error(), "chmod 600")) {
				t.Errorf("%04o: it does not say what to do: %v", mode, err)
			}
		}
		if fine && string(text) != "secret" {
			t.Errorf("%04o: read %q", mode, text)
		}
		if modeOf(t, path) != mode {
			t.Errorf("%04o: it was changed", mode)
		}
	}
}

func TestWhatIsNoSmallFileIsNotRead(t *testing.T) {
	if _, err := private.Read(file(t, 0o600), 5); err == nil || !strings.Contains(err.Error(), "6 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := private.Read(t.TempDir(), 5); err == nil {
		t.Error("a folder is read")
	}
	if _, err := private.Read("/dev/zero", 5); err == nil {
		t.Error("a device is read")
	}
}

func TestOurOwnFileIsMended(t *testing.T) {
	for mode, want := range map[fs.FileMode]fs.FileMode{0o600: 0o600, 0o644: 0o600, 0o666: 0o600, 0o660: 0o600, 0o400: 0o400, 0o444: 0o400} {
		path := file(t, mode)
		mended, err := private.Mend(path)
		if err != nil || modeOf(t, path) != want || mended != (mode != want) {
			t.Errorf("%04o becomes %04o (%t, %v), want %04o", mode, modeOf(t, path), mended, err, want)
		}
		path = file(t, mode)
		opened, err := private.Open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		if got := modeOf(t, path); got != 0o600 {
			t.Errorf("opened, %04o becomes %04o", mode, got)
		}
		_ = opened.Close()
	}
	if mended, err := private.Mend(filepath.Join(t.TempDir(), "none")); mended || err != nil {
		t.Errorf("a file that is not there: %t, %v", mended, err)
	}
}

func TestNewFilesAndFoldersAreOursWhateverTheUmaskIs(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o177, 0o777} {
		folder := t.TempDir()
		old := syscall.Umask(mask) // of the whole process: no test here runs beside this one
		err := private.Folder(filepath.Join(folder, "d"))
		if err == nil {
			err = private.Write(filepath.Join(folder, "d", "f"), []byte("x"))
		}
		syscall.Umask(old)
		if err != nil {
			t.Fatalf("umask %04o: %v", mask, err)
		}
		if d, f := modeOf(t, filepath.Join(folder, "d")), modeOf(t, filepath.Join(folder, "d", "f")); d != 0o700 || f != 0o600 {
			t.Errorf("umask %04o: the folder has mode %04o, the file %04o", mask, d, f)
		}
	}
}
