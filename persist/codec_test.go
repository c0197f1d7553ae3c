package persist

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/informerd/informerd/cache"
)

var updateGolden = flag.Bool("update", false, "write testdata anew")

func records() []cache.Record {
	full := record("ns", "x", "7")
	full.Dictionary, full.Size, full.Created = math.MaxUint32, math.MaxUint32, math.MinInt64
	many := record("ns", "many", "7")
	for range 600 {
		many.Terms = append(many.Terms, interned(cache.Term{Index: "node", Value: "n"})...)
	}
	return []cache.Record{{Data: []byte{}}, record("", "cluster", "1"), full, many}
}

func TestRecordRoundTrip(t *testing.T) {
	indexes := newIndexTable(nil)
	var keys, values [][]byte
	for _, rec := range records() {
		key, err := appendKey(nil, rec.Key)
		if err != nil {
			t.Fatal(err)
		}
		keys, values = append(keys, key), append(values, encodeRecord(key, &rec, indexes))
	}
	d := newRecordDecoder(indexes.names)
	for i, want := range records() {
		got, err := d.decode(keys[i], values[i])
		if err != nil {
			t.Fatal(err)
		}
		clear(values[i]) // as when the transaction has ended
		same(t, "record", got, want)
		if cap(got.Data) != len(got.Data) {
			t.Error("appending to the data of a record writes where it should not")
		}
	}
}

// TestGolden holds the bytes on disk still: a change here is a change of format.
func TestGolden(t *testing.T) {
	rec := record("ns", "x", "7")
	rec.Dictionary = 3
	key, _ := appendKey(nil, rec.Key)
	name, _ := resourceName(cache.Resource{Cluster: "east", GVR: deployments.GVR})
	m := &meta{Spec: savedOf(pods, "7").Spec, ResourceVersions: map[string]string{"": "7"}, ClusterUID: "c1",
		ServerVersion: "v1", Lineage: "l1", Indexes: []string{"label"}, Terms: 1, Dictionaries: 1, Objects: 1, Sum: 5, SavedAt: savedOf(pods, "7").SavedAt}
	value, err := encodeMeta(metaKey, m)
	if err != nil {
		t.Fatal(err)
	}
	_, dictionary := encodeDictionary(3, []byte("dictionary"))
	golden := document("east", "/openapi/v3", "data")
	_, document, err := encodeDocument(&golden)
	if err != nil {
		t.Fatal(err)
	}
	for file, got := range map[string][]byte{
		"document":   document,
		"entry":      encodeEntry(&cache.LedgerEntry{Key: []byte("key"), Value: []byte("value")}),
		"format":     encodeFormat(plainFormat),
		"ledger":     (&ledgerMeta{name: "to-chat", entries: 300, sum: 5}).encode(),
		"name":       name,
		"record":     encodeRecord(key, &rec, newIndexTable(nil)),
		"meta":       value,
		"dictionary": dictionary,
	} {
		path := filepath.Join("testdata", file+".golden")
		if *updateGolden {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %q, want %q, %v", file, got, want, err)
		}
	}
}

// TestReadOlderMeta: what an informerd wrote that knew no version of terms, and one that
// knew no lineage.
func TestReadOlderMeta(t *testing.T) {
	for version, terms := range map[string]int{"1": 0, "2": 1} {
		value, err := os.ReadFile(filepath.Join("testdata", "meta-"+version+".golden"))
		if err != nil {
			t.Fatal(err)
		}
		m, err := decodeMeta(metaKey, value)
		if err != nil || m.Terms != terms || m.Lineage != "" || m.ClusterUID != "c1" || m.Sum != 5 {
			t.Errorf("decodeMeta() of version %s = %+v, %v", version, m, err)
		}
	}
}

// FuzzDecodeRecord: any bytes are a record or an error, and a record that was
// decoded survives another round.
func FuzzDecodeRecord(f *testing.F) {
	for _, rec := range records() {
		key, _ := appendKey(nil, rec.Key)
		f.Add(key, encodeRecord(key, &rec, newIndexTable([]string{"a", "b", "c"})), true)
	}
	f.Add([]byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, key, value []byte, reseal bool) {
		value = bytes.Clone(value)
		if reseal && len(value) >= sealSize { // past the checksum
			seal(key, value, recordVersion)
		}
		names := []string{"a", "b", "c"}
		rec, err := newRecordDecoder(names).decode(key, value)
		if err != nil {
			return
		}
		again := encodeRecord(key, &rec, newIndexTable(names))
		got, err := newRecordDecoder(names).decode(key, again)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "record", got, rec)
	})
}

func FuzzDecodeMeta(f *testing.F) {
	value, _ := encodeMeta(metaKey, &meta{Spec: savedOf(pods, "1").Spec})
	f.Add(value)
	f.Add([]byte("12345{} {}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		value = bytes.Clone(value)
		if len(value) >= sealSize {
			seal(metaKey, value, metaVersion)
		}
		if _, err := decodeMeta(metaKey, value); err != nil {
			return
		}
	})
}

func FuzzDecodeOthers(f *testing.F) {
	f.Add(encodeFormat(1), []byte("a\x00b\x00c\x00d"))
	d := document("east", "/openapi/v3", "data")
	key, value, _ := encodeDocument(&d)
	f.Add(value, key)
	f.Add((&ledgerMeta{name: "to-chat", entries: 1, sum: 2}).encode(), []byte("meta"))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		_, _ = decodeFormat(a)
		if m, err := decodeLedgerMeta(metaKey, a); err == nil {
			if again, err := decodeLedgerMeta(metaKey, m.encode()); err != nil || *again != *m {
				t.Errorf("%v became %v, %v", m, again, err)
			}
		}
		_, _, _ = decodeDictionary(b, a)
		if d, err := decodeDocument(b, a); err == nil {
			key, value, err := encodeDocument(&d)
			if again, err2 := decodeDocument(key, value); err != nil || err2 != nil || !equal(again, d) {
				t.Errorf("%v became %v: %v, %v", d, again, err, err2)
			}
		}
		if r, err := parseResourceName(b); err == nil {
			if name, err := resourceName(r); err != nil || !bytes.Equal(name, b) {
				t.Errorf("%q became %q", b, name)
			}
		}
		if k := parseKey(b); bytes.IndexByte(b, 0) >= 0 {
			if key, err := appendKey(nil, k); err != nil || !bytes.Equal(key, b) {
				t.Errorf("%q became %q", b, key)
			}
		}
	})
}
