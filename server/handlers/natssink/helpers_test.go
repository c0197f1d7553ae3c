package natssink

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

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

// broker is a NATS server with JetStream, which can be stopped and started again.
type broker struct {
	t       *testing.T
	options server.Options
	*server.Server
}

func serve(t *testing.T, change func(*server.Options)) *broker {
	t.Helper()
	b := &broker{t: t, options: server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	}}
	if change != nil {
		change(&b.options)
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

func (b *broker) start() {
	b.t.Helper()
	options := b.options
	s, err := server.NewServer(&options)
	if err != nil {
		b.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		b.t.Fatal("the server does not start within a minute")
	}
	b.Server, b.options.Port = s, options.Port
}

func (b *broker) stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// stream has a stream of that name, and what is in it afterwards.
func (b *broker) stream(c jetstream.StreamConfig, options ...nats.Option) jetstream.Stream {
	b.t.Helper()
	nc, err := nats.Connect(b.ClientURL(), options...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := js.CreateOrUpdateStream(b.t.Context(), c)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func all() jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "ALL", Subjects: []string{"informerd.>"}}
}

// messages are those of a stream.
func messages(t *testing.T, s jetstream.Stream) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := info.State.FirstSeq; n <= info.State.LastSeq; n++ {
		m, err := s.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func open(t *testing.T, url string, change func(*Config)) *Sink {
	t.Helper()
	c := Config{Servers: []string{url}}
	if change != nil {
		change(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
