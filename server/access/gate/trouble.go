package gate

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Trouble remembers what cannot be asked of the API server of one cluster, for people.
// The zero value with a Log is ready. It is safe for concurrent use.
type Trouble struct {
	Log *slog.Logger

	mu   sync.Mutex // guards what
	what map[string]string
}

// Told is what hears how each question of one kind went. It logs when that changes.
func (t *Trouble) Told(kind string) func(error) {
	return func(err error) {
		if began, over := t.note(kind, err); began {
			t.Log.Warn("who asks or what they may cannot be told, so nothing is answered that is not known", "what", kind, "err", err)
		} else if over {
			t.Log.Info("who asks and what they may can be told again", "what", kind)
		}
	}
}

func (t *Trouble) note(kind string, err error) (began, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, had := t.what[kind]
	if err == nil {
		delete(t.what, kind)
		return false, had
	}
	if t.what == nil {
		t.what = map[string]string{}
	}
	t.what[kind] = err.Error()
	return !had, false
}

// Reason is what is wrong now, "" if nothing is.
func (t *Trouble) Reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(t.what)) {
		all = append(all, t.what[kind])
	}
	return strings.Join(all, "; ")
}
