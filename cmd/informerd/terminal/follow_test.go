package terminal

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/informerd/informerd/cache"
)

// tellTale is an output that a test reads while a command writes.
type tellTale struct {
	mu   sync.Mutex // guards all below
	text bytes.Buffer
	grew chan struct{}
}

func (o *tellTale) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.grew <- struct{}{}:
	default:
	}
	return o.text.Write(b)
}

func (o *tellTale) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// wait waits until the output has all parts.
func (o *tellTale) wait(tb testing.TB, parts ...string) {
	tb.Helper()
	late := time.After(time.Minute)
	for {
		missing := ""
		for _, p := range parts {
			if !strings.Contains(o.String(), p) {
				missing = p
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-o.grew:
		case <-late:
			tb.Fatalf("no %q in %q", missing, o.String())
		}
	}
}

// started is a command that goes on.
type started struct {
	out, err *tellTale
	stop     context.CancelFunc
	done     chan error
}

func (w *world) start(tb testing.TB, args ...string) *started {
	tb.Helper()
	s := &started{out: &tellTale{grew: make(chan struct{}, 1)}, err: &tellTale{grew: make(chan struct{}, 1)}, done: make(chan error, 1)}
	root := &cobra.Command{Use: "informerd", SilenceErrors: true, SilenceUsage: true}
	Commands(root)
	root.SetArgs(append(args, "--server", w.url))
	root.SetOut(s.out)
	root.SetErr(s.err)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	tb.Cleanup(s.stop)
	go func() { s.done <- root.ExecuteContext(ctx) }()
	return s
}

// end waits for the end, and gives the exit code.
func (s *started) end(tb testing.TB) int {
	tb.Helper()
	select {
	case err := <-s.done:
		if err == nil {
			return 0
		}
		code, _, _ := Outcome(err)
		return code
	case <-time.After(time.Minute):
		tb.Fatal("it does not end")
		return 0
	}
}

// TestWatchChanges: each change is a line, whatever kind it is of, and Ctrl-C ends it well.
func TestWatchChanges(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "watch", "pods,nodes", "-n", "shop")
	s.out.wait(t, "ADDED", "pod/web-1-a", "pod/web-1-b", "node/n1")
	if strings.Contains(s.out.String(), "alone") {
		t.Errorf("another namespace's: %s", s.out)
	}
	w.of("pods").apply(t, cache.Modified, pod("shop", "web-1-b", "n1", "Running", 201, ""))
	s.out.wait(t, "MODIFIED  shop          pod/web-1-b")
	w.of("pods").apply(t, cache.Deleted, pod("shop", "web-1-b", "n1", "Running", 202, ""))
	s.out.wait(t, "DELETED   shop          pod/web-1-b")
	s.stop()
	if code := s.end(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWatchChangesOnly(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "watch", "cm", "--changes-only", "-o", "json")
	// When the beginning is over cannot be seen, so the change comes again until it is told.
	for version := 203; !strings.Contains(s.out.String(), `"name":"new"`); version++ {
		w.of("cm").apply(t, cache.Modified, fmt.Sprintf(`{"metadata":{"name":"new","namespace":"shop","uid":"x","resourceVersion":"%d"}}`, version))
		time.Sleep(time.Millisecond)
	}
	if strings.Contains(s.out.String(), `"name":"one"`) {
		t.Errorf("what was there is told: %s", s.out)
	}
	s.stop()
	s.end(t)
}

// TestWaitEndsAtTheEvent: not before all are so, and then at once.
func TestWaitEndsAtTheEvent(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "wait", "pods", "-n", "shop", "-l", "app=web", "--for", `object.status.phase == "Succeeded"`, "--timeout", "1m")
	for w.of("pods").store.Stats().Subscribers < 2 {
		time.Sleep(time.Millisecond)
	}
	w.of("pods").apply(t, cache.Modified, pod("shop", "web-1-a", "n1", "Succeeded", 301, ""))
	w.of("pods").apply(t, cache.Modified, pod("team", "alone", "n1", "Succeeded", 302, ""))
	select {
	case err := <-s.done:
		t.Fatalf("ended with %v while one of two was so", err)
	case <-time.After(50 * time.Millisecond):
	}
	began := time.Now()
	w.of("pods").apply(t, cache.Modified, pod("shop", "web-1-b", "n1", "Succeeded", 303, ""))
	if code := s.end(t); code != 0 {
		t.Errorf("exit code %d: %s", code, s.err)
	}
	t.Logf("ended %v after the event", time.Since(began))
	if want := "pod/web-1-a condition met\npod/web-1-b condition met\n"; s.out.String() != want {
		t.Errorf("%q, want %q", s.out, want)
	}
}

// TestWaitForWhatIsToCome: an object that is named need not be there yet.
func TestWaitForWhatIsToCome(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "wait", "pod/late", "-n", "shop", "--for", `object.status.phase == "Running"`)
	for w.of("pods").store.Stats().Subscribers < 2 {
		time.Sleep(time.Millisecond)
	}
	w.of("pods").apply(t, cache.Added, pod("shop", "late", "n1", "Pending", 301, ""))
	w.of("pods").apply(t, cache.Modified, pod("shop", "late", "n1", "Running", 302, ""))
	if code := s.end(t); code != 0 || s.out.String() != "pod/late condition met\n" {
		t.Errorf("exit code %d, %q", code, s.out)
	}
}

func TestWaitForDeletion(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "wait", "pods", "-n", "shop", "--for", "delete")
	for w.of("pods").store.Stats().Subscribers == 0 {
		time.Sleep(time.Millisecond)
	}
	w.of("pods").apply(t, cache.Deleted, pod("shop", "web-1-a", "n1", "Running", 301, ""))
	w.of("pods").apply(t, cache.Deleted, pod("shop", "web-1-b", "n1", "Running", 302, ""))
	if code := s.end(t); code != 0 {
		t.Errorf("exit code %d: %s", code, s.err)
	}
}

func TestWaitInterrupted(t *testing.T) {
	w := newWorld(t)
	s := w.start(t, "wait", "pods/never", "--for", "create", "--timeout", "-1s")
	for w.of("pods").store.Stats().Subscribers == 0 {
		time.Sleep(time.Millisecond)
	}
	s.stop()
	if code := s.end(t); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
}

// TestStaleMatch: that a condition held for an older version of an object says nothing of
// the newer one.
func TestStaleMatch(t *testing.T) {
	w := &waited{question: question{resources: []string{"pods"}}, goal: goal{filter: "true"}, all: newObjects(), met: newObjects()}
	object := func(version string) *partial {
		p := &partial{Kind: "Pod"}
		p.Metadata.Name, p.Metadata.UID, p.Metadata.ResourceVersion = "a", "u", version
		return p
	}
	w.all.apply(&change{Type: "ADDED", Resource: "pods"}, object("1"))
	w.met.apply(&change{Type: "ADDED", Resource: "pods"}, object("1"))
	w.all.apply(&change{Type: "BOOKMARK"}, nil)
	w.met.apply(&change{Type: "BOOKMARK"}, nil)
	if lacking := w.lacking(); len(lacking) != 0 || !w.known() {
		t.Fatalf("lacking %q", lacking)
	}
	w.all.apply(&change{Type: "MODIFIED", Resource: "pods"}, object("2"))
	if lacking := w.lacking(); len(lacking) != 1 {
		t.Errorf("lacking %q", lacking)
	}
	w.met.apply(&change{Type: "RESYNC", Resource: "pods"}, nil)
	if w.known() || len(w.met.versions) != 0 {
		t.Errorf("what was told before a RESYNC counts: %+v", w.met)
	}
}

// TestWaitUnanswered: of a resource that cannot be read nobody knows that its objects are
// gone, until it can.
func TestWaitUnanswered(t *testing.T) {
	w := newWorld(t)
	w.of("pods").set(cache.Syncing)
	if r := w.run(t, "wait", "pods/web-1-a", "-n", "shop", "--for", "delete", "--timeout", "0"); r.code != ExitNoAnswer || r.out != "" {
		t.Errorf("exit code %d, %q, %q", r.code, r.out, r.err)
	}
	s := w.start(t, "wait", "pods/gone", "-n", "shop", "--for", "delete")
	s.err.wait(t, "pods is syncing")
	w.of("pods").set(cache.Live)
	if code := s.end(t); code != 0 || !strings.Contains(s.out.String(), "pod/gone deleted") {
		t.Errorf("exit code %d, %q", code, s.out)
	}
}

// TestWaitBegunAnew: what a connection told that nothing goes on after is void.
func TestWaitBegunAnew(t *testing.T) {
	o := newObjects()
	o.apply(&change{Type: "ADDED", Resource: "pods"}, &partial{})
	o.apply(&change{Type: "OPENED", Resumed: true}, &partial{})
	if len(o.versions) != 1 {
		t.Errorf("resumed: %v", o.versions)
	}
	o.apply(&change{Type: "OPENED"}, &partial{})
	if len(o.versions) != 0 || o.known() {
		t.Errorf("begun anew: %v, known: %v", o.versions, o.known())
	}
}
