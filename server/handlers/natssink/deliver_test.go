package natssink

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
)

// eventOf reads a message as CloudEvents' NATS binding says.
func eventOf(t *testing.T, m *jetstream.RawStreamMsg) *event.Event {
	t.Helper()
	e := event.New()
	if strings.HasPrefix(m.Header.Get("Content-Type"), "application/cloudevents") {
		if err := json.Unmarshal(m.Data, &e); err != nil {
			t.Fatal(err)
		}
		return &e
	}
	attributes := map[string]any{}
	for name := range m.Header {
		if attribute, is := strings.CutPrefix(name, "ce-"); is {
			value, err := url.PathUnescape(m.Header.Get(name))
			if err != nil {
				t.Fatal(err)
			}
			attributes[attribute] = value
		}
	}
	attributes["data"] = json.RawMessage(m.Data)
	text, err := json.Marshal(attributes)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

// TestBothModes: what is stored is the same event in both modes, on a subject of the object.
func TestBothModes(t *testing.T) {
	for _, mode := range []cloudevent.Mode{"", cloudevent.ModeStructured, cloudevent.ModeBinary} {
		t.Run(string(mode), func(t *testing.T) {
			b := serve(t, nil)
			stream := b.stream(all())
			s := open(t, b.ClientURL(), func(c *Config) { c.Mode = mode })
			d := delivery()
			d.Name = `wéb.1 "x"%` // names of RBAC's kinds may have all of that
			deliver(t, s, d)
			got := messages(t, stream)
			if len(got) != 1 {
				t.Fatalf("%d messages are stored", len(got))
			}
			if want := `informerd.h.main.deployments%2Eapps.shop.w%C3%A9b%2E1%20"x"%25`; got[0].Subject != want {
				t.Errorf("subject is %s, want %s", got[0].Subject, want)
			}
			if id := got[0].Header.Get("Nats-Msg-Id"); id != d.ID {
				t.Errorf("id is %q", id)
			}
			e := eventOf(t, got[0])
			if err := e.Validate(); err != nil {
				t.Error(err)
			}
			if e.ID() != d.ID || e.Source() != "/clusters/main/handlers/h" || e.Type() != "io.informerd.object.changes" || e.DataContentType() != "application/json" ||
				!e.Time().Equal(d.Since) || e.Subject() != "deployments.apps/shop/"+d.Name || e.Extensions()["sequence"] != "00000000000000000007" {
				t.Errorf("event is %s", e)
			}
			var data map[string]any
			if err := json.Unmarshal(e.Data(), &data); err != nil {
				t.Fatal(err)
			}
			if data["name"] != d.Name || data["object"].(map[string]any)["kind"] != "Deployment" {
				t.Errorf("data is %s", e.Data())
			}
		})
	}
}

// TestStoredOnce: a delivery that is repeated is stored once, also by another process; a state
// that is told again after something else is stored again, or its consumers would believe in
// what came between.
func TestStoredOnce(t *testing.T) {
	b := serve(t, nil)
	stream := b.stream(all())
	first := open(t, b.ClientURL(), nil)
	deliver(t, first, delivery())
	second := open(t, b.ClientURL(), nil)
	again := delivery()
	again.Sequence++
	deliver(t, second, again)
	if got := messages(t, stream); len(got) != 1 {
		t.Fatalf("%d messages are stored of one that was delivered by two", len(got))
	}
	left := delivery()
	left.ID, left.Transition = left.ID+"/leaves", handlers.Leaves
	deliver(t, first, left)
	back := delivery()
	back.Transition, back.Sequence = handlers.Enters, 9
	deliver(t, first, back)
	got := messages(t, stream)
	if len(got) != 3 || eventOf(t, got[2]).Type() != "io.informerd.object.enters" || eventOf(t, got[2]).ID() != back.ID {
		t.Fatalf("%d messages are stored, want one that left and came back", len(got))
	}
	deliver(t, first, back) // its acknowledgement may have been lost
	if got := messages(t, stream); len(got) != 3 {
		t.Errorf("%d messages are stored, want the last one once", len(got))
	}
}

// TestRestarted: of what is delivered while the server stops and starts nothing is lost, and
// nothing is stored twice; the order of each object's states is kept.
func TestRestarted(t *testing.T) {
	b := serve(t, nil)
	b.stream(all())
	s := open(t, b.ClientURL(), func(c *Config) { c.Timeout = 20 * time.Second })
	const objects, states = 8, 60
	var workers sync.WaitGroup
	half := make(chan struct{}, objects)
	for o := range objects {
		workers.Go(func() {
			for n := range states {
				if n == states/3 {
					half <- struct{}{}
				}
				d := named(fmt.Sprint("o", o))
				d.ID = fmt.Sprintf("h/o%d/%d", o, n)
				retry(t, s, d)
			}
		})
	}
	for range 2 {
		<-half // and not all of them at once
		b.stop()
		b.start()
	}
	workers.Wait()
	next := map[string]int{}
	for _, m := range messages(t, b.stream(all())) {
		object, n := "", 0
		if _, err := fmt.Sscanf(strings.ReplaceAll(m.Header.Get("Nats-Msg-Id"), "/", " "), "h %s %d", &object, &n); err != nil {
			t.Fatal(err)
		}
		if n != next[object] {
			t.Fatalf("%s: state %d is stored where %d should be", object, n, next[object])
		}
		next[object]++
	}
	for o := range objects {
		if n := next[fmt.Sprint("o", o)]; n != states {
			t.Errorf("o%d: %d of %d states are stored", o, n, states)
		}
	}
}

// retry delivers d as a handler does: again, for as long as the server is to blame.
func retry(t *testing.T, s *Sink, d *handlers.Delivery) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := s.Deliver(context.Background(), d)
		if err == nil {
			return
		}
		if _, is := err.(*handlers.DownError); !is || time.Now().After(end) { //nolint:errorlint // exactly this is promised
			t.Errorf("%s: %T %v", d.ID, err, err)
			return
		}
	}
}
