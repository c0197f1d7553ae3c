package kafkasink

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/informerd/informerd/server/handlers/cloudevent"
)

// eventOf reads a record as CloudEvents' Kafka binding says.
func eventOf(t *testing.T, r *kgo.Record) *event.Event {
	t.Helper()
	headers := map[string]string{}
	for _, h := range r.Headers {
		headers[h.Key] = string(h.Value)
	}
	e := event.New()
	if strings.HasPrefix(headers["content-type"], "application/cloudevents") {
		if err := json.Unmarshal(r.Value, &e); err != nil {
			t.Fatal(err)
		}
		return &e
	}
	attributes := map[string]any{"datacontenttype": headers["content-type"], "data": json.RawMessage(r.Value)}
	for name, value := range headers {
		if attribute, is := strings.CutPrefix(name, "ce_"); is {
			attributes[attribute] = value
		}
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	return &e
}

// TestBothModes: what is written is the same event in both modes, and its key is the object.
func TestBothModes(t *testing.T) {
	for _, mode := range []cloudevent.Mode{"", cloudevent.ModeStructured, cloudevent.ModeBinary} {
		t.Run(string(mode), func(t *testing.T) {
			c := serve(t)
			s := open(t, c, func(c *Config) { c.Mode = mode })
			d := delivery()
			d.Name = `wéb.1 "x"%` // names of RBAC's kinds may have all of that
			deliver(t, s, d)
			got := records(t, c)
			if len(got) != 1 {
				t.Fatalf("%d records are written", len(got))
			}
			if want := "main/deployments.apps/shop/" + d.Name; string(got[0].Key) != want {
				t.Errorf("key is %s, want %s", got[0].Key, want)
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

// checkOrder sees to it that every state of every object is there once, in the order of the
// states, and in one partition for each object: the one that other clients would choose.
func checkOrder(t *testing.T, all []*kgo.Record, objects, states int) {
	t.Helper()
	next, partitions := map[string]int{}, map[int32]bool{}
	for _, r := range all {
		n := 0
		key := string(r.Key)
		if _, err := fmt.Sscanf(eventOf(t, r).ID()[len("h/"):], strings.TrimPrefix(key, "main/deployments.apps/shop/")+"/%d", &n); err != nil {
			t.Fatal(err)
		}
		if n != next[key] {
			t.Fatalf("%s: state %d is written where %d should be", key, n, next[key])
		}
		next[key]++
		partitions[r.Partition] = true
		want := kgo.StickyKeyPartitioner(nil).ForTopic(topic).Partition(&kgo.Record{Key: r.Key}, 3)
		if int(r.Partition) != want {
			t.Errorf("%s is in partition %d, want %d", key, r.Partition, want)
		}
	}
	for o := range objects {
		if n := next[fmt.Sprintf("main/deployments.apps/shop/o%d", o)]; n != states {
			t.Errorf("o%d: %d of %d states are written", o, n, states)
		}
	}
	if len(partitions) < 2 {
		t.Errorf("all is in %d partition", len(partitions))
	}
}

// work delivers states of objects, each object's one after the other, and calls half when it
// is on its way.
func work(t *testing.T, s *Sink, objects, states int, half func()) {
	t.Helper()
	var workers sync.WaitGroup
	var once sync.Once
	for o := range objects {
		workers.Go(func() {
			for n := range states {
				if n == states/3 {
					once.Do(half)
				}
				d := named(fmt.Sprint("o", o))
				d.ID = fmt.Sprintf("h/o%d/%d", o, n)
				retry(t, s, d)
			}
		})
	}
	workers.Wait()
}

func TestKeysAndPartitions(t *testing.T) {
	c := serve(t)
	work(t, open(t, c, nil), 8, 30, func() {})
	checkOrder(t, records(t, c), 8, 30)
}

// TestRetriable: what passes by is no failure, and what was written though the answer says
// that it may not be is not written again.
func TestRetriable(t *testing.T) {
	c := serve(t)
	s := open(t, c, nil)
	refused := 0
	c.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if refused++; refused <= 3 {
			c.KeepControl()
			return answer(request.(*kmsg.ProduceRequest), kerr.NotLeaderForPartition), nil, true
		}
		return nil, nil, false
	})
	deliver(t, s, named("a"))
	for _, err := range []*kerr.Error{kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut, kerr.LeaderNotAvailable} {
		c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: 2})
		deliver(t, s, named(err.Message))
	}
	if got := records(t, c); refused <= 3 || len(got) != 5 {
		t.Errorf("%d records are written of 5 deliveries, with %d answers", len(got), refused)
	}
}

// answer is what a broker answers that does not take records.
func answer(q *kmsg.ProduceRequest, err *kerr.Error) kmsg.Response {
	a := q.ResponseKind().(*kmsg.ProduceResponse)
	for _, asked := range q.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, asked.TopicID
		for _, p := range asked.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, err.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		a.Topics = append(a.Topics, topic)
	}
	return a
}

// TestRestarted: of what is delivered while the brokers stop and start nothing is lost, and
// the order of each object's states is kept.
func TestRestarted(t *testing.T) {
	folder := t.TempDir()
	c := serve(t, kfake.DataDir(folder))
	ports := portsOf(t, c)
	s := open(t, c, func(c *Config) { c.Timeout = 2 * time.Second })
	work(t, s, 8, 30, func() {
		c.Close()
		c = serve(t, kfake.DataDir(folder), kfake.Ports(ports...))
	})
	checkOrder(t, records(t, c), 8, 30)
}

// TestSlowBroker: a record that was sent and not acknowledged in time is neither written twice
// nor after a later state of its object.
func TestSlowBroker(t *testing.T) {
	c := serve(t)
	s := open(t, c, func(c *Config) { c.Timeout = 500 * time.Millisecond })
	deliver(t, s, named("before"))
	release := make(chan struct{})
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-release })
		return nil, nil, false // and then as ever
	})
	wantDown(t, s.Deliver(t.Context(), delivery()), "did not acknowledge the record within 500ms")
	wantDown(t, s.Deliver(t.Context(), delivery()), "500ms")
	later := delivery()
	later.ID = "h/uid-1/43"
	wantDown(t, s.Deliver(t.Context(), later), "500ms")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Deliver(ctx, later); err != context.Canceled { //nolint:errorlint // exactly this is promised
		t.Errorf("error %v", err)
	}
	close(release)
	retry(t, s, delivery())
	retry(t, s, later)
	var ids []string
	for _, r := range records(t, c) {
		if string(r.Key) == keyOf(delivery()) {
			ids = append(ids, eventOf(t, r).ID())
		}
	}
	if strings.Join(ids, " ") != "h/uid-1/42 h/uid-1/43" {
		t.Errorf("written are %s", ids)
	}
	if n := len(s.attempts.byKey); n > 0 {
		t.Errorf("%d attempts are still known", n)
	}
}
