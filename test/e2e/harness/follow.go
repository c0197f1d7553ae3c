package harness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/informerd/informerd/test/sse"
)

// Change is one ADDED, MODIFIED or DELETED that a follower received.
type Change struct {
	Type, Key, UID, ResourceVersion string
	ID                              string
}

func (c Change) String() string { return fmt.Sprintf("%s %s at %s", c.Type, c.Key, c.ResourceVersion) }

// Follower reads an event stream of informerd and rebuilds the objects from it,
// as a client with a cache of its own would. It comes back with Last-Event-ID
// whenever its connection ends, until the test does.
//
// Whatever a correct stream cannot hold is a fault: an ADDED of an object that
// is there, a MODIFIED or DELETED of one that is not, or a MODIFIED that changes
// nothing. A stream that shows parts of objects is not held to the last of these,
// nor one about many resources to ids on its changes: its bookmarks have them.
type Follower struct {
	informerd *Informerd
	path      string
	cancel    context.CancelFunc
	done      chan struct{}

	mu          sync.Mutex // guards all below
	objects     map[string]Object
	changes     []Change
	faults      []string
	states      []string
	ends        []string // how connections ended
	lastID      string
	connections int
	resyncs     int
	initials    int // times the present objects were sent
	bookmarks   int
	initial     map[string]Object // being received, after RESYNC or at the start
	wholes      map[string]Object // the last GROUPS and FACETS
	told        int               // how many of them came
}

// Follow follows path, which is without watch=true.
func Follow(tb testing.TB, i *Informerd, path string) *Follower {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{
		informerd: i, path: path, cancel: cancel, done: make(chan struct{}),
		objects: map[string]Object{}, wholes: map[string]Object{},
	}
	tb.Cleanup(f.Stop)
	go func() {
		defer close(f.done)
		f.run(ctx)
	}()
	return f
}

// Stop ends the follower; what it received remains.
func (f *Follower) Stop() {
	f.cancel()
	<-f.done
}

func (f *Follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := f.connect(ctx)
		f.mu.Lock()
		if ctx.Err() == nil && (len(f.ends) == 0 || f.ends[len(f.ends)-1] != err.Error()) {
			f.ends = append(f.ends, err.Error())
		}
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// connect reads one connection to its end.
func (f *Follower) connect(ctx context.Context) error {
	separator := "?"
	if strings.Contains(f.path, "?") {
		separator = "&"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.informerd.URL+f.path+separator+"watch=true", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := f.LastID(); id != "" {
		req.Header.Set("Last-Event-ID", id)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 2000))
		return fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(body))
	}
	f.connected()
	return sse.Read(resp.Body, f.event)
}

func (f *Follower) connected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connections++
	f.initial = nil
	if f.lastID == "" {
		f.initial = map[string]Object{}
		f.initials++
	}
}

type streamEvent struct {
	Type            string
	Resource        string // of a stream about many
	ResourceVersion string
	State           string
	Reason          string
	Object          Object
}

func (f *Follower) event(id, data string) error {
	var e streamEvent
	if err := decode([]byte(data), &e); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED":
		f.changeLocked(e, id)
	case "BOOKMARK":
		f.bookmarks++
		if f.initial != nil {
			f.objects, f.initial = f.initial, nil
		}
	case "RESYNC":
		f.resyncs++
		if e.Resource != "" {
			f.forgetLocked(e.Resource)
			break
		}
		f.initials++
		f.initial = map[string]Object{}
	case "GROUPS", "FACETS":
		f.wholes[e.Type] = e.Object
		f.told++
	case "WARNING": // the filter has no value for some objects
	case "STATE":
		f.states = append(f.states, e.State)
	case "ERROR":
		message, _ := e.Object["message"].(string)
		return fmt.Errorf("event ERROR: %v %s", e.Object["code"], message)
	default:
		f.faultLocked("unknown event %q", data)
	}
	if id != "" {
		f.lastID = id
	}
	return nil
}

// forgetLocked forgets the objects of one of many resources.
func (f *Follower) forgetLocked(resource string) {
	for _, objects := range []map[string]Object{f.objects, f.initial} {
		maps.DeleteFunc(objects, func(key string, _ Object) bool { return strings.HasPrefix(key, resource+" ") })
	}
}

func (f *Follower) changeLocked(e streamEvent, id string) {
	o, key := e.Object, e.Object.Key()
	if e.Resource != "" {
		key = e.Resource + " " + key
	}
	if f.initial != nil {
		if e.Type != "ADDED" {
			f.faultLocked("%s %s among the initial objects", e.Type, key)
		}
		if _, twice := f.initial[key]; twice {
			f.faultLocked("%s is twice among the initial objects", key)
		}
		f.initial[key] = o
		return
	}
	change := Change{e.Type, key, o.UID(), o.ResourceVersion(), id}
	if id == "" && e.Resource == "" {
		f.faultLocked("%s has no id", change)
	}
	held, there := f.objects[key]
	switch {
	case e.Type == "ADDED" && there:
		f.faultLocked("%s, but it is there at %s", change, held.ResourceVersion())
	case e.Type != "ADDED" && !there:
		f.faultLocked("%s, but it is not there", change)
	case e.Type == "MODIFIED" && held.UID() != o.UID():
		f.faultLocked("%s changes the UID", change)
	case e.Type == "MODIFIED" && held.ResourceVersion() == o.ResourceVersion() && o.ResourceVersion() != "":
		f.faultLocked("%s changes nothing", change)
	}
	f.changes = append(f.changes, change)
	if e.Type == "DELETED" {
		delete(f.objects, key)
	} else {
		f.objects[key] = o
	}
}

func (f *Follower) faultLocked(format string, args ...any) {
	if len(f.faults) < 20 {
		f.faults = append(f.faults, fmt.Sprintf(format, args...))
	}
}

// LastID is the id of the last event that had one.
func (f *Follower) LastID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lastID
}

// Changes are the changes received so far, the initial objects not among them.
func (f *Follower) Changes() []Change {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.changes)
}

// States are the STATE events received.
func (f *Follower) States() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.states)
}

// Ends says how its connections ended.
func (f *Follower) Ends() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ends)
}

// Initials is how often it was sent the present objects.
func (f *Follower) Initials() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.initials
}

// Connections is how often it connected.
func (f *Follower) Connections() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.connections
}

// Objects are the objects as rebuilt from the stream.
func (f *Follower) Objects() map[string]Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.objects)
}

// Whole is the last answer that the stream told whole, in an event GROUPS or
// FACETS, and how many it told.
func (f *Follower) Whole(event string) (Object, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wholes[event], f.told
}

// Wait waits until the initial objects have been received.
func (f *Follower) Wait(tb testing.TB) {
	tb.Helper()
	Eventually(tb, time.Minute, "follower of "+f.path, func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.bookmarks == 0 && f.told == 0 {
			return fmt.Errorf("no bookmark yet; connections ended: %v", f.ends)
		}
		return nil
	})
}

// CheckFaults fails the test if the stream held what it must not.
func (f *Follower) CheckFaults(tb testing.TB) {
	tb.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		tb.Errorf("stream %s: %s", f.path, fault)
	}
}

// CheckEqual fails the test unless the objects rebuilt from the stream become
// those of want.
func (f *Follower) CheckEqual(tb testing.TB, want func() (map[string]Object, error)) {
	tb.Helper()
	err := Poll(30*time.Second, func() error {
		wanted, err := want()
		if err != nil {
			return err
		}
		got := f.Objects()
		return EqualObjects(got, wanted, len(got))
	})
	if err != nil {
		tb.Errorf("objects rebuilt from stream %s: %v", f.path, err)
	}
	f.CheckFaults(tb)
}

// CheckUndisturbed fails the test unless its first connection still stands and
// never had to start over.
func (f *Follower) CheckUndisturbed(tb testing.TB) {
	tb.Helper()
	f.CheckFaults(tb)
	if n, ends := f.Connections(), f.Ends(); n != 1 || len(ends) > 0 {
		tb.Errorf("stream %s: %d connections, ended by %v", f.path, n, ends)
	}
}
