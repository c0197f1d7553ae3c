package mirror

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

func configMapSpec() cache.Spec {
	s := podSpec
	s.GVR, s.Kind, s.Redact = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "Pod", nil
	return s
}

func randomKey(r *rand.Rand) cache.Key {
	return cache.Key{Namespace: []string{"a", "b-1", "ü"}[r.IntN(3)], Name: fmt.Sprintf("n%d", r.IntN(20))}
}

// step changes a world at random.
func step(w *world, r *rand.Rand) {
	extra := fmt.Sprintf(`,"spec":{"secret":{"a":"x"},"n":%d,"f":%g,"text":%s}`, r.IntN(10), r.NormFloat64()*1e10, quote([]string{"", "grüße 🚀", "\u0000", "\\u0000"}[r.IntN(4)]))
	switch n := r.IntN(20); {
	case n < 10:
		w.put(randomKey(r), fmt.Sprintf(`{"app":"a%d"}`, r.IntN(3)), extra)
	case n < 14:
		w.drop(randomKey(r))
	case n < 16:
		w.pass()
	case n == 16:
		w.relist(func(objects map[cache.Key]string, next func() int) {
			for range r.IntN(10) {
				if k := randomKey(r); r.IntN(2) == 0 {
					delete(objects, k)
				} else {
					objects[k] = object(k, next(), "{}", extra)
				}
			}
		})
	case n == 17 && r.IntN(10) == 0: // more than a ring remembers is compared
		for range 300 {
			w.put(randomKey(r), "{}", extra)
		}
	}
}

// TestModel: under random changes, while connections are cut and informerd starts anew, the
// rows that one statement sees are always those of the version that it sees.
func TestModel(t *testing.T) {
	t.Parallel()
	worlds := []*world{newWorld(t, podSpec), newWorld(t, configMapSpec())}
	r := newRig(t, postgres.Start(t), worlds...)
	r.begin()
	eventually(t, "there are tables", func() error {
		c := r.connect()
		defer c.Close(t.Context())
		_, _, _, err := seen(c, worlds[0])
		return err
	})
	var seeing atomic.Int64
	stopped := make(chan struct{})
	done := make(chan struct{})
	reader := r.connect()
	go func() {
		defer close(done)
		last := map[*world]string{}
		for i := 0; ; i++ {
			select {
			case <-stopped:
				return
			default:
			}
			w := worlds[i%2]
			version, rows, objects, err := seen(reader, w)
			if errors.Is(err, pgx.ErrNoRows) { // it is not mirrored yet
				continue
			}
			if err != nil {
				t.Error(err)
				return
			}
			was, ok := w.at(version)
			if !ok || rows != was {
				t.Errorf("at %s there are %d rows:\n%s\nwant %v:\n%s", version, objects, rows, ok, was)
				return
			}
			if version < last[w] { // of the same length
				t.Errorf("it went back from %s to %s", last[w], version)
			}
			if version != last[w] {
				seeing.Add(1)
			}
			last[w] = version
		}
	}()
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range 1500 {
		step(worlds[rnd.IntN(2)], rnd)
		time.Sleep(2 * time.Millisecond)
		switch {
		case i%200 == 51:
			r.server.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'informerd'`)
		case i%500 == 301:
			r.end()
			r.begin()
		}
	}
	for _, w := range worlds {
		r.settle(w)
	}
	close(stopped)
	<-done
	s := r.mirror.Status()
	t.Logf("seed %d: %d versions seen, %+v", seed, seeing.Load(), s)
	if seeing.Load() < 50 {
		t.Errorf("%d versions were seen: the test proves little", seeing.Load())
	}
}
