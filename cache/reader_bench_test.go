package cache

import (
	"context"
	"fmt"
	"strconv"
	"testing"
)

// BenchmarkScoped asks an index of 100,000 objects in 5,000 namespaces as those who see
// all of them, and as those who see 1,000 of the namespaces.
func BenchmarkScoped(b *testing.B) {
	s := newStore(b, thingSpec)
	objs := make([]*Object, 100_000)
	for i := range objs {
		var err error
		objs[i], err = s.Decode(fmt.Appendf(nil, `{"metadata":{"namespace":"ns-%d","name":"t-%d","uid":"u%d","resourceVersion":"%d"},"spec":{"node":"n%d"}}`, i%5000, i, i, i+1, i%500), "example.com/v1", "Thing")
		if err != nil {
			b.Fatal(err)
		}
	}
	s.Replace("", objs, strconv.Itoa(len(objs)))
	var some []string
	for i := range 1000 {
		some = append(some, fmt.Sprint("ns-", i*5))
	}
	order, err := ParseOrder("-metadata.creationTimestamp")
	if err != nil {
		b.Fatal(err)
	}
	for name, scope := range map[string]Scope{"all": WholeScope(), "1000of5000": NewScope(some, nil)} {
		r := new(View).Hold(s).Reader(scope)
		for query, q := range map[string]Query{
			"index": {Terms: []Term{{"node", "n7"}}},
			"page":  {Sort: order},
			"none":  {Terms: []Term{{"node", "nothing"}}},
		} {
			b.Run(query+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if _, err := r.Page(context.Background(), q, 100, ""); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run("first/"+name, func(b *testing.B) {
			for b.Loop() {
				s.contents.seen.sets = nil
				if _, err := r.Select(context.Background(), Query{Terms: []Term{{"node", "n7"}}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
