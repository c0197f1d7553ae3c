package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Key is a digest of texts, each with its length before it, so that no client who
// chooses one of them makes it look like another one and the next.
type Key [sha256.Size]byte

// KeyOf is another one for any other texts, or other borders between them.
func KeyOf(texts ...string) (k Key) {
	h := sha256.New()
	write(h, texts...)
	h.Sum(k[:0])
	return k
}

// write tells h how many texts there are, and each with its length.
func write(h hash.Hash, texts ...string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(texts)))
	h.Write(n[:])
	for _, text := range texts {
		binary.BigEndian.PutUint64(n[:], uint64(len(text)))
		h.Write(n[:])
		h.Write([]byte(text))
	}
}

// Digest is the same for users about whom every authorizer must say the same, and no
// others: all that it is told of them is in it.
func Digest(u user.Info) string {
	h := sha256.New()
	write(h, u.GetName(), u.GetUID())
	write(h, u.GetGroups()...)
	extra := u.GetExtra()
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		write(h, key)
		write(h, extra[key]...)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
