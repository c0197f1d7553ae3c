//go:build unix

package persist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrivate: a snapshot holds what its cluster holds, whoever made the file, and
// however it is damaged.
func TestPrivate(t *testing.T) {
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for name, content := range map[string]string{"empty": "", "damaged": strings.Repeat("no snapshot ", 10_000), "sound": "sound"} {
		t.Run(name, func(t *testing.T) {
			path := newPath(t)
			if content == "sound" {
				if err := open(t, Options{Path: path}).Close(); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
			open(t, Options{Path: path})
			if m := mode(path); m != private {
				t.Errorf("mode %04o, want %04o", m, private)
			}
			if name == "damaged" {
				if m := mode(path + ".damaged"); m != private {
					t.Errorf("what was moved aside has mode %04o, want %04o", m, private)
				}
			}
		})
	}
}

// TestNewFolderIsPrivate: so has the folder, if it is made for it.
func TestNewFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	open(t, Options{Path: filepath.Join(dir, "informerd.db")})
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v; want mode 0700", info.Mode(), err)
	}
}

// TestSymbolicLink: a link may name a file that somebody else chose.
func TestSymbolicLink(t *testing.T) {
	path := newPath(t)
	other := filepath.Join(filepath.Dir(path), "other")
	if err := os.WriteFile(other, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Path: path, NoSync: true}); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("Open() = %v, want an error about the link", err)
	}
	if b, err := os.ReadFile(other); err != nil || string(b) != "precious" {
		t.Errorf("what it names holds %q, %v", b, err)
	}
}
