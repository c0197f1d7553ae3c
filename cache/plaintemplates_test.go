package cache

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// inOnePlace are some templates that have to share a place, and what each of them is.
func inOnePlace(t *testing.T, count int) (of []*dictionary, plain [][]byte) {
	t.Helper()
	s := filledStore(t, 2000)
	for d := range s.contents.templates {
		json, err := d.template.appendPlain(nil)
		if err != nil {
			t.Fatal(err)
		}
		of = append(of, &dictionary{id: firstTemplate + plainPlaces*uint32(len(of)), template: d.template})
		plain = append(plain, json)
	}
	if len(of) < count {
		t.Fatalf("there are %d templates only", len(of))
	}
	return of[:count], plain[:count]
}

// TestPlainTemplatesShared: whoever reads beside a template has that one until the end, whatever
// others read in the same place meanwhile.
func TestPlainTemplatesShared(t *testing.T) {
	of, plain := inOnePlace(t, 5)
	var p plainTemplates
	p.keep(of[4], slices.Clone(plain[4])) // one that was packed beside
	var reading sync.WaitGroup
	for worker := range 8 {
		reading.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 3))
			for range 400 {
				n := rng.IntN(len(of))
				for range 1 + rng.IntN(4) {
					err := p.use(of[n], func(got []byte) error {
						for range 3 {
							if !bytes.Equal(got, plain[n]) {
								return errors.New("it is another one")
							}
							runtime.Gosched()
						}
						return nil
					})
					if err != nil {
						t.Errorf("template %d: %v", n, err)
						return
					}
				}
			}
		})
	}
	reading.Wait()
}

// TestPlainTemplateDamaged: one that cannot be unpacked is not read, and nobody takes what is left
// of it for the one that was in its place.
func TestPlainTemplateDamaged(t *testing.T) {
	of, plain := inOnePlace(t, 2)
	damaged := *of[1].template
	damaged.size++ // all of it is unpacked before that is noticed
	of[1].template = &damaged
	var p plainTemplates
	for range 3 {
		for range 3 {
			if err := p.use(of[1], func([]byte) error { t.Error("it was read"); return nil }); err == nil {
				t.Fatal("one of another size was unpacked")
			}
		}
		for range 3 {
			err := p.use(of[0], func(got []byte) error {
				if !bytes.Equal(got, plain[0]) {
					return errors.New("it is another one")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
