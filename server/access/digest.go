package access

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// Digest is the same for users about whom every authorizer must say the same, and no
// others: all that it is told of them is in it.
func Digest(u user.Info) string {
	h := sha256.New()
	write := func(texts ...string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(texts)))
		h.Write(n[:])
		for _, text := range texts {
			binary.BigEndian.PutUint64(n[:], uint64(len(text)))
			h.Write(n[:])
			h.Write([]byte(text))
		}
	}
	write(u.GetName(), u.GetUID())
	write(u.GetGroups()...)
	extra := u.GetExtra()
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		write(key)
		write(extra[key]...)
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
