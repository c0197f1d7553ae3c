package persist

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// Keyring is what a key file holds: the keys that files may be encrypted with. The
// first encrypts what is written, the others let older files be read. There is at
// least one. It is not changed once it was read.
type Keyring struct {
	file string
	keys []fileKey
}

// fileKey is one line of a key file.
type fileKey struct {
	name   string
	secret []byte
}

const (
	keySize = 32
	// maxKeyFile is far more than anyone needs, and keeps a file given by mistake
	// from being read.
	maxKeyFile = 64 << 10
)

// keyName never matches a key itself: the base64 of 32 bytes ends with =.
var keyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ReadKeys reads a key file: on each line a name, a colon and the base64 of 32
// bytes, as the API server's EncryptionConfiguration has them. Lines that are empty
// or begin with # are left out. It refuses a file that others may read. Its errors
// name the file and the line, and never say what is written there.
func ReadKeys(path string) (*Keyring, error) {
	text, err := readKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("read key file: %w", err)
	}
	k := &Keyring{file: path}
	lines := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := parseKeyLine(line)
		if err == nil {
			err = k.add(key, lines)
		}
		if err != nil {
			return nil, fmt.Errorf("read key file: %s:%d: %w", path, i+1, err)
		}
		lines[key.name] = i + 1
	}
	if len(k.keys) == 0 {
		return nil, fmt.Errorf("read key file: %s holds no key: write one as name:key, the key as head -c 32 /dev/urandom | base64 makes it", path)
	}
	return k, nil
}

func readKeyFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat() // of the file that is read, not of a link to it, as a mounted Secret has
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o037 != 0:
		// The group may read it: Kubernetes gives a mounted Secret to the fsGroup of the pod.
		return "", fmt.Errorf("%s can be read or changed by others (mode %04o): make it 0600, or 0640 for a group that may read it",
			path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err == nil && len(data) > maxKeyFile {
		err = fmt.Errorf("%s is larger than 64 KiB: is it a key file?", path)
	}
	return string(data), err
}

func parseKeyLine(line string) (fileKey, error) {
	name, encoded, ok := strings.Cut(line, ":")
	name = strings.TrimSpace(name)
	if !ok || !keyName.MatchString(name) {
		return fileKey{}, errors.New("needs name:key, the name of up to 64 letters, digits, dots, - and _")
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return fileKey{}, errors.New("the key is not base64")
	}
	if len(secret) != keySize {
		return fileKey{}, fmt.Errorf("the key has %d bytes, not %d", len(secret), keySize)
	}
	return fileKey{name, secret}, nil
}

// add refuses what would leave it open which key is meant. lines say where names are.
func (k *Keyring) add(key fileKey, lines map[string]int) error {
	for _, other := range k.keys {
		if other.name == key.name {
			return fmt.Errorf("the name %q is taken by the key on line %d", key.name, lines[other.name])
		}
		if bytes.Equal(other.secret, key.secret) {
			return fmt.Errorf("the key %q is the one on line %d, %q, once more", key.name, lines[other.name], other.name)
		}
	}
	k.keys = append(k.keys, key)
	return nil
}

// first is the key to write with.
func (k *Keyring) first() fileKey { return k.keys[0] }

func (k *Keyring) find(name string) (fileKey, bool) {
	i := slices.IndexFunc(k.keys, func(key fileKey) bool { return key.name == name })
	if i < 0 {
		return fileKey{}, false
	}
	return k.keys[i], true
}

// Names are the names of the keys, in the order of the file.
func (k *Keyring) Names() []string {
	names := make([]string, len(k.keys))
	for i, key := range k.keys {
		names[i] = key.name
	}
	return names
}

// String keeps keys out of whatever prints one.
func (k *Keyring) String() string { return fmt.Sprintf("%s %q", k.file, k.Names()) }

// GoString does, too.
func (k *Keyring) GoString() string { return k.String() }
