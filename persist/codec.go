package persist

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// This file, record.go and ledgers.go alone know the bytes of keys and values;
// docs/FORMAT.md draws them.

// Versions of the whole file. They change when an older informerd would misread what
// a newer one writes: one that knows nothing of encryption leaves an encrypted file be.
// One that knows nothing of ledgers would save copies without them, and lose them when it
// rewrites the file. It leaves a file with ledgers be, too, and uses one without.
const (
	plainFormat            = 1
	encryptedFormat        = 2
	plainLedgersFormat     = 3
	encryptedLedgersFormat = 4
	formatVersion          = encryptedLedgersFormat // the newest that is known
)

// formatOf is the version of a file that is encrypted, or not, and has ledgers, or none.
func formatOf(encrypted, ledgers bool) uint32 {
	switch {
	case encrypted && ledgers:
		return encryptedLedgersFormat
	case encrypted:
		return encryptedFormat
	case ledgers:
		return plainLedgersFormat
	}
	return plainFormat
}

// encrypted reports whether a file of a version that is known is encrypted.
func encrypted(version uint32) bool {
	return version == encryptedFormat || version == encryptedLedgersFormat
}

// formatMagic opens the format value. The layout of that one value never
// changes, so that every informerd can tell the version of any file.
const formatMagic = "informerd snapshot\n"

// Version bytes of the values, for changes that leave the rest of the file be.
const (
	recordVersion     = 1
	metaVersion       = 3
	dictionaryVersion = 1
	documentVersion   = 1
	ledgerVersion     = 1
	entryVersion      = 1
)

// sealSize is what precedes the body of every value: its version byte and the
// checksum of key, version and body.
const sealSize = 5

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errShort    = errors.New("value ends early")
	errChecksum = errors.New("checksum does not match")
	errTrailing = errors.New("bytes after the end")
)

// checksum covers the key too: a value under another key is damage.
func checksum(key, value []byte) uint32 {
	sum := crc32.Update(0, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, value[:1])
	return crc32.Update(sum, castagnoli, value[sealSize:])
}

// seal fills in the version and checksum of a value whose first sealSize bytes
// were left for it.
func seal(key, value []byte, version byte) {
	value[0] = version
	binary.LittleEndian.PutUint32(value[1:sealSize], checksum(key, value))
}

// unseal checks a value and returns its body.
func unseal(key, value []byte, version byte) ([]byte, error) {
	if len(value) < sealSize {
		return nil, errShort
	}
	if checksum(key, value) != binary.LittleEndian.Uint32(value[1:sealSize]) {
		return nil, errChecksum
	}
	if value[0] != version {
		return nil, fmt.Errorf("value version %d is not known", value[0])
	}
	return value[sealSize:], nil
}

// storedSum is the checksum a value claims to have. It may be the wrong one:
// then the running sum of its resource is wrong too, and Load notices.
func storedSum(value []byte) uint32 {
	if len(value) < sealSize {
		return 0
	}
	return binary.LittleEndian.Uint32(value[1:sealSize])
}

// encodeFormat is the value of the format key.
func encodeFormat(version uint32) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(formatMagic), version)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeFormat returns the version of the file.
func decodeFormat(value []byte) (uint32, error) {
	n := len(formatMagic)
	switch {
	case len(value) != n+8:
		return 0, errShort
	case string(value[:n]) != formatMagic:
		return 0, errors.New("not the format of informerd")
	case binary.LittleEndian.Uint32(value[n+4:]) != crc32.Checksum(value[:n+4], castagnoli):
		return 0, errChecksum
	}
	version := binary.LittleEndian.Uint32(value[n:])
	if version == 0 {
		return 0, errors.New("format version is 0")
	}
	return version, nil
}

// resourceName is the name of a resource's bucket. Its parts are in the order
// of cache.Resource.Compare, and NUL sorts before all else.
func resourceName(r cache.Resource) ([]byte, error) {
	parts := []string{r.Cluster, r.GVR.Group, r.GVR.Resource, r.GVR.Version}
	for _, p := range parts {
		if strings.IndexByte(p, 0) >= 0 {
			return nil, fmt.Errorf("resource %q: NUL in its name", r)
		}
	}
	return []byte(strings.Join(parts, "\x00")), nil
}

func parseResourceName(name []byte) (cache.Resource, error) {
	parts := strings.Split(string(name), "\x00")
	if len(parts) != 4 {
		return cache.Resource{}, fmt.Errorf("bucket %q does not name a resource", name)
	}
	return cache.Resource{
		Cluster: parts[0],
		GVR:     schema.GroupVersionResource{Group: parts[1], Resource: parts[2], Version: parts[3]},
	}, nil
}

// appendKey appends namespace NUL name: bytes.Compare of two keys is Compare of
// the objects'.
func appendKey(b []byte, k cache.Key) ([]byte, error) {
	if strings.IndexByte(k.Namespace, 0) >= 0 {
		return b, fmt.Errorf("key %q: NUL in its namespace", k)
	}
	b = append(b, k.Namespace...)
	b = append(b, 0)
	return append(b, k.Name...), nil
}

// parseKey is the inverse of appendKey. A key without separator is a name.
func parseKey(key []byte) cache.Key {
	namespace, name, ok := strings.Cut(string(key), "\x00")
	if !ok {
		return cache.Key{Name: string(key)}
	}
	return cache.Key{Namespace: namespace, Name: name}
}

// meta is what a resource's meta key holds, as JSON between seals. Objects and
// Sum are those of the records committed with it: Sum is the exclusive or of
// their checksums (see shelf.sum), so that a record lost, added or left behind is
// noticed. DictionarySum is that of the dictionaries of an encrypted file.
type meta struct {
	Spec             cache.Spec        `json:"spec"`
	ResourceVersions map[string]string `json:"resourceVersions,omitempty"`
	ClusterUID       string            `json:"clusterUID,omitempty"`
	ServerVersion    string            `json:"serverVersion,omitempty"`
	Lineage          string            `json:"lineage,omitempty"`
	Indexes          []string          `json:"indexes,omitempty"`
	Terms            int               `json:"terms,omitempty"`
	Dictionaries     int               `json:"dictionaries,omitempty"`
	Objects          int               `json:"objects"`
	Sum              uint64            `json:"sum"`
	DictionarySum    uint64            `json:"dictionarySum,omitempty"`
	SavedAt          time.Time         `json:"savedAt"`
	ProvenAt         time.Time         `json:"provenAt,omitzero"`
}

// saved is what the rest of informerd sees of m, without dictionaries.
func (m *meta) saved() cache.Saved {
	return cache.Saved{
		Spec:             m.Spec,
		ResourceVersions: m.ResourceVersions,
		ClusterUID:       m.ClusterUID,
		ServerVersion:    m.ServerVersion,
		Lineage:          m.Lineage,
		Terms:            m.Terms,
		Objects:          m.Objects,
		SavedAt:          m.SavedAt,
		ProvenAt:         m.ProvenAt,
	}
}

func encodeMeta(key []byte, m *meta) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	value := append(make([]byte, sealSize, sealSize+len(body)), body...)
	seal(key, value, metaVersion)
	return value, nil
}

// decodeMeta also reads version 1, which has no terms, and 2, which has no lineage.
func decodeMeta(key, value []byte) (*meta, error) {
	version := byte(metaVersion)
	if len(value) > 0 && value[0] > 0 && value[0] < metaVersion {
		version = value[0]
	}
	body, err := unseal(key, value, version)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	m := new(meta)
	if err := dec.Decode(m); err != nil {
		return nil, err
	}
	if dec.InputOffset() != int64(len(body)) {
		return nil, errTrailing
	}
	return m, nil
}

// documentKey is cluster NUL URI NUL media types.
func documentKey(k cache.DocumentKey) ([]byte, error) {
	parts := []string{k.Cluster, k.URI, k.Accept}
	for _, p := range parts {
		if strings.IndexByte(p, 0) >= 0 {
			return nil, fmt.Errorf("document %q: NUL in its key", k.URI)
		}
	}
	return []byte(strings.Join(parts, "\x00")), nil
}

func encodeDocument(d *cache.Document) (key, value []byte, err error) {
	if key, err = documentKey(d.DocumentKey); err != nil {
		return nil, nil, err
	}
	value = binary.AppendVarint(make([]byte, sealSize, sealSize+len(d.Data)+64), d.Fetched.Unix())
	value = appendString(value, d.ContentType)
	value = appendString(value, d.ETag)
	value = append(value, d.Data...)
	seal(key, value, documentVersion)
	return key, value, nil
}

// decodeDocument returns a document that shares nothing with key and value.
func decodeDocument(key, value []byte) (cache.Document, error) {
	var d cache.Document
	body, err := unseal(key, value, documentVersion)
	if err != nil {
		return d, err
	}
	parts := strings.Split(string(key), "\x00")
	if len(parts) != 3 {
		return d, errors.New("key does not name a document")
	}
	d.DocumentKey = cache.DocumentKey{Cluster: parts[0], URI: parts[1], Accept: parts[2]}
	r := reader{b: body}
	d.Fetched = time.Unix(r.varint(), 0)
	d.ContentType, d.ETag = string(r.bytes()), string(r.bytes())
	if r.err != nil {
		return d, r.err
	}
	d.Data = bytes.Clone(r.b)
	return d, nil
}

func dictionaryKey(id uint32) []byte {
	return binary.BigEndian.AppendUint32(nil, id)
}

func encodeDictionary(id uint32, data []byte) (key, value []byte) {
	key = dictionaryKey(id)
	value = append(make([]byte, sealSize, sealSize+len(data)), data...)
	seal(key, value, dictionaryVersion)
	return key, value
}

// decodeDictionary returns a copy of the dictionary.
func decodeDictionary(key, value []byte) (uint32, []byte, error) {
	data, err := unseal(key, value, dictionaryVersion)
	if err != nil {
		return 0, nil, err
	}
	id, err := parseDictionaryKey(key)
	return id, bytes.Clone(data), err
}

func parseDictionaryKey(key []byte) (uint32, error) {
	if len(key) != 4 {
		return 0, errors.New("key is not a dictionary id")
	}
	return binary.BigEndian.Uint32(key), nil
}
