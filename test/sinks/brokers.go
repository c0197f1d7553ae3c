package sinks

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Broker is one that starts, stops and starts again, at the same address, and keeps what it
// has. It is stopped at the end of the test.
type Broker interface {
	Start()
	Stop()
	// Address is as a handler's configuration names it.
	Address() string
	// Messages are all that it has, those of each object in their order.
	Messages() [][]byte
}

// freePort is one that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

type natsBroker struct {
	t      *testing.T
	folder string
	port   int
	server *server.Server
}

// NewNATS is a NATS server with a stream of informerd.>, not started yet.
func NewNATS(t *testing.T) Broker {
	return &natsBroker{t: t, folder: t.TempDir(), port: freePort(t)}
}

func (b *natsBroker) Address() string { return "nats://127.0.0.1:" + strconv.Itoa(b.port) }

func (b *natsBroker) Start() {
	b.t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: b.port, JetStream: true, StoreDir: b.folder, NoLog: true, NoSigs: true,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		b.t.Fatal("NATS does not start within a minute")
	}
	b.server = s
	b.t.Cleanup(b.Stop)
	b.stream(func(jetstream.Stream) {})
}

func (b *natsBroker) Stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

func (b *natsBroker) stream(do func(jetstream.Stream)) {
	b.t.Helper()
	nc, err := nats.Connect(b.Address())
	if err != nil {
		b.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := js.CreateOrUpdateStream(context.Background(), jetstream.StreamConfig{Name: "ALL", Subjects: []string{"informerd.>"}})
	if err != nil {
		b.t.Fatal(err)
	}
	do(s)
}

func (b *natsBroker) Messages() (all [][]byte) {
	b.stream(func(s jetstream.Stream) {
		for n := uint64(1); n <= s.CachedInfo().State.LastSeq; n++ {
			m, err := s.GetMsg(b.t.Context(), n)
			if err != nil {
				b.t.Fatal(err)
			}
			all = append(all, m.Data)
		}
	})
	return all
}

type kafkaBroker struct {
	t       *testing.T
	folder  string
	port    int
	cluster *kfake.Cluster
}

// NewKafka is a Kafka, as kfake has it, with Topic, not started yet.
func NewKafka(t *testing.T) Broker {
	return &kafkaBroker{t: t, folder: t.TempDir(), port: freePort(t)}
}

// Topic is the one that a broker of Kafka has.
const Topic = "things"

func (b *kafkaBroker) Address() string { return "127.0.0.1:" + strconv.Itoa(b.port) }

func (b *kafkaBroker) Start() {
	b.t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(b.port), kfake.SeedTopics(3, Topic), kfake.DataDir(b.folder))
	if err != nil {
		b.t.Fatal(err)
	}
	b.cluster = c
	b.t.Cleanup(c.Close)
}

func (b *kafkaBroker) Stop() { b.cluster.Close() }

func (b *kafkaBroker) Messages() (all [][]byte) {
	b.t.Helper()
	left := int64(0)
	for _, p := range b.cluster.PartitionInfos(Topic) {
		left += p.HighWatermark
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()), kgo.ConsumeTopics(Topic))
	if err != nil {
		b.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for int64(len(all)) < left {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err0(); err != nil {
			b.t.Fatalf("%d of %d records: %v", len(all), left, err)
		}
		for _, r := range fetched.Records() {
			all = append(all, r.Value)
		}
	}
	return all
}
