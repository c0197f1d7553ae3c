package cache

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestTrainOnLargeObjects: objects of more than the trainer's block neither stop
// it nor are lost by what it made.
func TestTrainOnLargeObjects(t *testing.T) {
	var samples [][]byte
	for n := range trainMinObjects {
		samples = append(samples, fmt.Appendf(nil, `{"kind":"ConfigMap","metadata":{"name":"small-%d","labels":{"app":"shop"}},"data":{"key":"value-%d"}}`, n, n))
	}
	large := []byte(`{"kind":"ConfigMap","metadata":{"name":"large"},"data":{"text":"` + strings.Repeat("grüße, 世界 ", 1<<16) + `"}}`)
	for range 4 {
		samples = append(samples, large)
	}
	d, err := train(newDictionaryID(), samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range samples {
		packed := d.compress(plain)
		if packed == nil {
			continue
		}
		got, err := d.decompress(nil, packed, len(plain))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, plain) {
			t.Errorf("%d bytes come back as %d other ones", len(plain), len(got))
		}
	}
}
