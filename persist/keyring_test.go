package persist

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func encoded(letter string, n int) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, n)))
}

func keyFileOf(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadKeys(t *testing.T) {
	a, b := encoded("a", 32), encoded("b", 32)
	path := keyFileOf(t, "# of November\r\n\r\n new.2026-11_1 : "+a+" \r\nold:"+b, 0o600)
	k, err := ReadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.Names(), []string{"new.2026-11_1", "old"}) || string(k.first().secret) != strings.Repeat("a", 32) {
		t.Errorf("ReadKeys() = %v", k)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		said := fmt.Sprintf(verb, k)
		// The file's path is said, and may hold any digits: two bytes of the key in a row are not among them.
		for _, key := range []string{"aaa", "97 97", "0x61, 0x61", "6161616161", a[:8]} {
			if strings.Contains(said, key) {
				t.Errorf("%s prints the key: %s", verb, said)
			}
		}
	}
}

// TestReadKeysRefuses: mistakes are named by their line, and never with what is there.
func TestReadKeysRefuses(t *testing.T) {
	a, b := encoded("a", 32), encoded("b", 32)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":          {"", "holds no key"},
		"comments":         {"# a:" + a + "\n\n", "holds no key"},
		"no name":          {a, ":1: needs name:key"},
		"empty name":       {":" + a, ":1: needs name:key"},
		"name and key":     {"x:" + b + "\n" + a + ":x", ":2: needs name:key"},
		"strange name":     {"a b:" + a, ":1: needs name:key"},
		"long name":        {strings.Repeat("n", 65) + ":" + a, ":1: needs name:key"},
		"not base64":       {"x:" + a[:20] + "!" + a[20:], ":1: the key is not base64"},
		"base64 of others": {"x:" + strings.TrimRight(a, "="), ":1: the key is not base64"},
		"no key":           {"x:", ":1: the key has 0 bytes, not 32"},
		"short":            {"\nx:" + encoded("a", 16), ":2: the key has 16 bytes, not 32"},
		"long":             {"x:" + encoded("a", 33), ":1: the key has 33 bytes, not 32"},
		"name twice":       {"x:" + a + "\nx:" + b, `:2: the name "x" is taken by the key on line 1`},
		"key twice":        {"x:" + a + "\n\ny:" + a, `:3: the key "y" is the one on line 1, "x", once more`},
		"large":            {strings.Repeat("#\n", 40_000), "is it a key file?"},
	} {
		t.Run(name, func(t *testing.T) {
			path := keyFileOf(t, c.text, 0o600)
			_, err := ReadKeys(path)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Fatalf("ReadKeys() = %v, want %s, and the path", err, c.want)
			}
			if strings.Contains(err.Error(), "YWFh") || strings.Contains(err.Error(), "YmJi") || strings.Contains(err.Error(), "aaa") {
				t.Errorf("the error says the key: %v", err)
			}
		})
	}
}

// TestReadKeysOfOthers: a key that others can read is none; a group may read it, as that
// of a pod reads a mounted Secret, where the name is a link.
func TestReadKeysOfOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode there")
	}
	for mode, fine := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o440: true, 0o640: true,
		0o644: false, 0o444: false, 0o660: false, 0o601: false, 0o602: false, 0o650: false,
	} {
		path := keyFileOf(t, "a:"+encoded("a", 32), mode)
		link := path + ".link"
		if err := os.Symlink(path, link); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, link} {
			_, err := ReadKeys(p)
			if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("mode %04o", mode)) {
				t.Errorf("%s of mode %04o: %v", filepath.Base(p), mode, err)
			}
		}
	}
	if _, err := ReadKeys(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("ReadKeys() of a folder = %v", err)
	}
}
