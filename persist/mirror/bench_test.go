package mirror

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/postgres"
)

// benchWorld is one of pods of 7 KB.
func benchWorld(b *testing.B, n int) (*world, func(i, round int)) {
	b.Helper()
	w := newWorld(b, podSpec)
	put := func(i, round int) {
		var env []string
		for j := range 60 {
			env = append(env, fmt.Sprintf(`{"name":"VARIABLE_%d","value":"some value of %d in round %d, as long as such a value is"}`, j, i, round))
		}
		spec := `,"spec":{"nodeName":"n1","containers":[{"name":"c","image":"registry.example/app:1","env":[` + strings.Join(env, ",") + `]}]},"status":{"phase":"Running"}`
		w.put(cache.Key{Namespace: fmt.Sprintf("team-%d", i%50), Name: fmt.Sprintf("pod-%d", i)}, `{"app":"shop","tier":"web"}`, spec)
	}
	w.objectsOnly = true
	for i := range n {
		put(i, 0)
	}
	return w, put
}

// BenchmarkMirror is what a first mirroring costs, the comparison after a restart, and 500
// changes of 20,000 objects.
func BenchmarkMirror(b *testing.B) {
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	w, put := benchWorld(b, n)
	r := newRig(b, postgres.Start(b), w)
	tables := r.open()
	defer tables.Close()
	write := func(b *testing.B, m *Mirror) {
		b.Helper()
		m.follow()
		if err := m.write(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	rows := func(b *testing.B, n int) { b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "rows/s") }
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := tables.Unmirror(context.Background(), w.spec.Resource); err != nil {
				b.Fatal(err)
			}
			m := r.newMirror(tables)
			b.StartTimer()
			write(b, m)
			m.close()
		}
		rows(b, n)
	})
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			m := r.newMirror(tables)
			write(b, m)
			m.close()
		}
		rows(b, n)
	})
	b.Run("changes", func(b *testing.B) {
		m := r.newMirror(tables)
		defer m.close()
		write(b, m)
		round := 0
		for b.Loop() {
			b.StopTimer()
			round++
			for i := range 500 {
				put((i*37+round)%n, round)
			}
			b.StartTimer()
			write(b, m)
		}
		rows(b, 500)
	})
}
