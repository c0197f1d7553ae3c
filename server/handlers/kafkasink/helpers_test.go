package kafkasink

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/sinktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	delivery = sinktest.Delivery
	named    = sinktest.Named
	deliver  = sinktest.Deliver
	file     = sinktest.File
	write    = sinktest.Write

	wantDown     = sinktest.WantDown
	wantRejected = sinktest.WantRejected
)

const topic = "changes"

// serve is a cluster of Kafka with a topic, as kfake has it.
func serve(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, topic)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// records are those of the topic, in the order of each partition.
func records(t *testing.T, c *kfake.Cluster, options ...kgo.Opt) (all []*kgo.Record) {
	t.Helper()
	left := int64(0)
	for _, p := range c.PartitionInfos(topic) {
		left += p.HighWatermark
	}
	client, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for int64(len(all)) < left {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			t.Fatalf("%d of %d records: %v", len(all), left, err)
		}
		all = append(all, fetched.Records()...)
	}
	return all
}

func open(t *testing.T, c *kfake.Cluster, change func(*Config)) *Sink {
	t.Helper()
	return openAt(t, c.ListenAddrs(), change)
}

func openAt(t *testing.T, brokers []string, change func(*Config)) *Sink {
	t.Helper()
	config := Config{Brokers: brokers, Topic: topic}
	if change != nil {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// retry delivers d as a handler does: again, for as long as the brokers are to blame.
func retry(t *testing.T, s *Sink, d *handlers.Delivery) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := s.Deliver(context.Background(), d)
		if err == nil {
			return
		}
		if _, is := errors.AsType[*handlers.DownError](err); !is || time.Now().After(end) {
			t.Errorf("%s: %T %v", d.ID, err, err)
			return
		}
	}
}
