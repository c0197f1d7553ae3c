package persist

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/informerd/informerd/cache"
)

// This file and shelf.go alone know the bytes of encrypted files; docs/FORMAT.md draws
// them.

const (
	lockVersion     = 1
	envelopeVersion = 1

	saltSize  = 16
	tokenSize = 16
	tagSize   = 16
	nonceSize = 12

	// saltUses is after how many values a salt is replaced. Nonces are random: of
	// 2^32 values that one key encrypts, two have the same one with a chance of
	// 2^-33, and from there on it grows.
	saltUses = 1 << 28
	// saltsKept bounds how many keys of salts are remembered. A file has a salt for
	// each Open that left a value in it.
	saltsKept = 1 << 10
)

// What the keys that are derived are for.
const (
	forLock   = "informerd snapshot lock"
	forNames  = "informerd snapshot names"
	forSums   = "informerd snapshot sums"
	forValues = "informerd snapshot values"
)

// vault is what encrypts and decrypts one file: keys that are derived from the data
// key of that file. A nil vault is that of a file that is not encrypted, and leaves
// everything as it is. It is safe for concurrent use.
type vault struct {
	lock lock
	data []byte
	sums cipher.Block

	naming sync.Mutex // guards mac and digest
	mac    hash.Hash
	digest []byte

	mu    sync.Mutex // guards all below
	salts map[[saltSize]byte]cipher.AEAD
	salt  [saltSize]byte // of what is written
	uses  int            // of salt
}

// lock is the data key of a file as the file holds it: encrypted.
type lock struct {
	// key is the name of the key that it is encrypted with.
	key    string
	sealed []byte
}

// newVault makes the vault of a new file.
func newVault(by fileKey) (*vault, error) {
	data := make([]byte, keySize)
	if _, err := rand.Read(data); err != nil {
		return nil, err
	}
	aead, err := lockAEAD(by.secret)
	if err != nil {
		return nil, err
	}
	return openVault(lock{by.name, aead.Seal(nil, nil, data, lockPlace(by.name))}, data)
}

// unlock opens the vault that l is of. Its error is ErrKey if no key fits.
func (k *Keyring) unlock(l lock) (*vault, error) {
	if k == nil {
		return nil, fmt.Errorf("%w: it is encrypted with the key %q; name the file that has it (snapshot.encryption.keyFile, or --key-file)", ErrKey, l.key)
	}
	by, ok := k.find(l.key)
	if !ok {
		return nil, fmt.Errorf("%w: it is encrypted with the key %q, and %s has only %s: add that key behind them",
			ErrKey, l.key, k.file, strings.Join(k.Names(), ", "))
	}
	aead, err := lockAEAD(by.secret)
	if err != nil {
		return nil, err
	}
	data, err := aead.Open(nil, nil, l.sealed, lockPlace(l.key))
	if err != nil {
		return nil, fmt.Errorf("%w: it is encrypted with another key %q than the one of that name in %s", ErrKey, l.key, k.file)
	}
	return openVault(l, data)
}

func lockAEAD(secret []byte) (cipher.AEAD, error) { return deriveAEAD(secret, nil, forLock) }

// lockPlace is the additional data of a lock.
func lockPlace(key string) []byte { return []byte(formatMagic + key) }

func openVault(l lock, data []byte) (*vault, error) {
	names, err := hkdf.Key(sha256.New, data, nil, forNames, keySize)
	if err != nil {
		return nil, err
	}
	sums, err := deriveBlock(data, nil, forSums)
	if err != nil {
		return nil, err
	}
	return &vault{
		lock: l, data: data, sums: sums, mac: hmac.New(sha256.New, names),
		salts: make(map[[saltSize]byte]cipher.AEAD), uses: saltUses,
	}, nil
}

func deriveBlock(secret, salt []byte, what string) (cipher.Block, error) {
	key, err := hkdf.Key(sha256.New, secret, salt, what, keySize)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

func deriveAEAD(secret, salt []byte, what string) (cipher.AEAD, error) {
	block, err := deriveBlock(secret, salt, what)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// sameAs reports whether both are vaults of the same file.
func (v *vault) sameAs(o *vault) bool {
	return v == o || v != nil && o != nil && bytes.Equal(v.data, o.data)
}

// resourceName is the name of r's bucket in the file.
func (v *vault) resourceName(r cache.Resource) ([]byte, error) {
	name, err := resourceName(r)
	if err != nil || v == nil {
		return name, err
	}
	return v.token(nil, []byte{kindResource}, name), nil
}

// describe names a bucket for people, as well as it can.
func (v *vault) describe(name []byte) string {
	if v != nil {
		return fmt.Sprintf("encrypted %x", name)
	}
	r, err := parseResourceName(name)
	if err != nil {
		return fmt.Sprintf("%q", name)
	}
	return r.String()
}

// token appends what stands for key in the given place.
func (v *vault) token(to, place, key []byte) []byte {
	v.naming.Lock()
	defer v.naming.Unlock()
	v.mac.Reset()
	v.mac.Write(place)
	v.mac.Write(key)
	v.digest = v.mac.Sum(v.digest[:0])
	return append(to, v.digest[:tokenSize]...)
}

// encrypt returns text as an envelope, in a slice of its own.
func (v *vault) encrypt(place, text []byte) ([]byte, error) {
	salt, aead, err := v.writing()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 1+saltSize, 1+saltSize+nonceSize+len(text)+tagSize)
	b[0] = envelopeVersion
	copy(b[1:], salt[:])
	return aead.Seal(b, nil, text, place), nil
}

// writing is the salt of the next value, and what encrypts under it.
func (v *vault) writing() ([saltSize]byte, cipher.AEAD, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.uses >= saltUses {
		if _, err := rand.Read(v.salt[:]); err != nil {
			return v.salt, nil, err
		}
		v.uses = 0
	}
	v.uses++
	aead, err := v.ofSaltLocked(v.salt)
	return v.salt, aead, err
}

// ofSaltLocked is what encrypts and decrypts under a salt.
func (v *vault) ofSaltLocked(salt [saltSize]byte) (cipher.AEAD, error) {
	if aead := v.salts[salt]; aead != nil {
		return aead, nil
	}
	aead, err := deriveAEAD(v.data, salt[:], forValues)
	if err != nil {
		return nil, err
	}
	if len(v.salts) >= saltsKept {
		clear(v.salts)
	}
	v.salts[salt] = aead
	return aead, nil
}

var errAltered = errors.New("value cannot be decrypted: it was altered, or is of another place")

// decrypt appends the text of an envelope to to.
func (v *vault) decrypt(to, place, envelope []byte) ([]byte, error) {
	if len(envelope) < 1+saltSize+nonceSize+tagSize {
		return nil, errShort
	}
	if envelope[0] != envelopeVersion {
		return nil, fmt.Errorf("envelope version %d is not known", envelope[0])
	}
	// It may lie in a mapping that cannot be read, which must not be found out with the lock.
	salt := [saltSize]byte(envelope[1:])
	v.mu.Lock()
	aead, err := v.ofSaltLocked(salt)
	v.mu.Unlock()
	if err != nil {
		return nil, err
	}
	text, err := aead.Open(to, nil, envelope[1+saltSize:], place)
	if err != nil {
		return nil, errAltered
	}
	return text, nil
}

// encodeLock is the value of the encryption key.
func encodeLock(l lock) []byte {
	b := appendString(make([]byte, sealSize), l.key)
	b = append(b, l.sealed...)
	seal(encryptionKey, b, lockVersion)
	return b
}

// decodeLock returns a lock that shares nothing with value.
func decodeLock(value []byte) (lock, error) {
	body, err := unseal(encryptionKey, value, lockVersion)
	if err != nil {
		return lock{}, err
	}
	r := reader{b: body}
	key := string(r.bytes())
	if r.err == nil && len(r.b) != nonceSize+keySize+tagSize {
		r.err = errShort
	}
	return lock{key, slices.Clone(r.b)}, r.err
}

// tagSum is a number for the tag of an envelope that nobody without the key knows: who
// puts back older values cannot choose them so that the sum of all stays what it is.
func (v *vault) tagSum(block *[aes.BlockSize]byte, envelope []byte) uint64 {
	if len(envelope) < tagSize {
		return 0
	}
	v.sums.Encrypt(block[:], envelope[len(envelope)-tagSize:])
	return binary.LittleEndian.Uint64(block[:])
}
