package terminal

import (
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestTopOfPhases: the pods of a node are one line whatever their phases, without those that
// have ended; fields are selected by as they are told.
func TestTopOfPhases(t *testing.T) {
	w := newWorld(t)
	pods := w.of("pods")
	pods.apply(t, cache.Modified, pod("team", "alone", "n1", "Succeeded", 301, ""))
	pods.apply(t, cache.Added, pod("team", "gone", "n1", "Failed", 302, ""))
	pods.apply(t, cache.Added, pod("team", "ended", "n2", "Failed", 303, ""))
	for _, test := range []struct {
		line []string
		want string
	}{
		{[]string{"top", "--no-headers"}, "n1   2/110   1.00 (25%)   0.00 (0%)   2 GiB (25%)   0 B (0%)\n"},
		{[]string{"top", "namespaces", "--no-headers"}, "shop   2   1.00   0.00   2 GiB   0 B\n"},
		{[]string{"top", "--no-headers", "--field-selector", "status.phase=Pending"}, "n1   1/110   0.50 (12%)   0.00 (0%)   1 GiB (12%)   0 B (0%)\n"},
		{[]string{"top", "--no-headers", "--field-selector", "status.phase=Failed"}, "n1   0/110   0.00 (0%)   0.00 (0%)   0 B (0%)   0 B (0%)\n"},
	} {
		if got := w.run(t, test.line...); got.out != test.want || got.err != "" || got.code != 0 {
			t.Errorf("%v: %+v, want %q", test.line, got, test.want)
		}
	}
}
