package natssink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/informerd/informerd/server/handlers/sinktest"
)

func streamOf(subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "ALL", Subjects: subjects}
}

// TestNoStream: without a stream all wait; of a handler some of whose subjects are stored,
// only those that are not.
func TestNoStream(t *testing.T) {
	b := serve(t, nil)
	same := open(t, b.ClientURL(), func(c *Config) { c.Subject = "changes.{handler}" })
	wantDown(t, same.Deliver(t.Context(), delivery()), "changes.h", "stream")
	each := open(t, b.ClientURL(), nil)
	wantDown(t, each.Deliver(t.Context(), delivery()), "informerd.*.*.*.*.*")
	b.stream(streamOf("informerd.*.*.*.other.*", "changes.h"))
	wantRejected(t, each.Deliver(t.Context(), delivery()), false, "informerd.h.main.deployments%2Eapps.shop.web")
	d := delivery()
	d.Namespace = "other"
	deliver(t, each, d)
	deliver(t, same, delivery())
	b.stream(all())
	deliver(t, each, delivery())
}

func TestNoJetStream(t *testing.T) {
	b := serve(t, func(o *server.Options) { o.JetStream = false })
	wantDown(t, open(t, b.ClientURL(), nil).Deliver(t.Context(), delivery()), "JetStream is not enabled")
	wantDown(t, open(t, b.ClientURL(), func(c *Config) { c.Subject = "a" }).Deliver(t.Context(), delivery()), "JetStream is enabled")
}

func TestOtherStream(t *testing.T) {
	b := serve(t, nil)
	b.stream(streamOf("informerd.>", "changes"))
	each := open(t, b.ClientURL(), func(c *Config) { c.Stream = "MINE" })
	wantRejected(t, each.Deliver(t.Context(), delivery()), false, "another stream than MINE")
	same := open(t, b.ClientURL(), func(c *Config) { c.Stream, c.Subject = "MINE", "changes" })
	wantDown(t, same.Deliver(t.Context(), delivery()), "another stream than MINE")
	deliver(t, open(t, b.ClientURL(), func(c *Config) { c.Stream = "ALL" }), delivery())
}

// TestTooLarge: what the server or the stream never takes is given up at once, and others are
// taken.
func TestTooLarge(t *testing.T) {
	for name, limit := range map[string]func(*server.Options, *jetstream.StreamConfig){
		"server": func(o *server.Options, _ *jetstream.StreamConfig) { o.MaxPayload = 8 << 10 },
		"stream": func(_ *server.Options, c *jetstream.StreamConfig) { c.MaxMsgSize = 8 << 10 },
	} {
		t.Run(name, func(t *testing.T) {
			c := all()
			b := serve(t, func(o *server.Options) { limit(o, &c) })
			limit(&server.Options{}, &c)
			stream := b.stream(c)
			s := open(t, b.ClientURL(), nil)
			large := named("large")
			large.Object = json.RawMessage(`"` + strings.Repeat("x", 9<<10) + `"`)
			wantRejected(t, s.Deliver(t.Context(), large), true, "send fewer fields")
			long := named(strings.Repeat("x", 5000)) // its subject would end the connection
			wantRejected(t, s.Deliver(t.Context(), long), true, "subject has 5")
			deliver(t, s, delivery())
			if got := messages(t, stream); len(got) != 1 {
				t.Errorf("%d messages are stored", len(got))
			}
		})
	}
}

// TestFull: a stream that takes nothing more is to blame, unless it is full of one subject.
func TestFull(t *testing.T) {
	b := serve(t, nil)
	c := all()
	c.Discard, c.MaxMsgs = jetstream.DiscardNew, 1
	b.stream(c)
	s := open(t, b.ClientURL(), nil)
	deliver(t, s, named("a"))
	wantDown(t, s.Deliver(t.Context(), named("b")), "maximum messages exceeded")
	c.MaxMsgs, c.MaxMsgsPerSubject, c.DiscardNewPerSubject = -1, 1, true
	b.stream(c)
	again := named("a")
	again.ID += "1"
	wantRejected(t, s.Deliver(t.Context(), again), false, "per subject")
	deliver(t, s, named("b"))
}

// TestSlow: who does not acknowledge within the timeout is to blame, and is not waited for by
// who is asked to stop.
func TestSlow(t *testing.T) {
	b := serve(t, nil)
	nc, err := nats.Connect(b.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	heard := make(chan *nats.Msg, 2)
	if _, err := nc.ChanSubscribe("informerd.>", heard); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s := open(t, b.ClientURL(), func(c *Config) { c.Timeout = 300 * time.Millisecond })
	wantDown(t, s.Deliver(t.Context(), delivery()), "did not acknowledge the message within 300ms")
	<-heard
	patient := open(t, b.ClientURL(), func(c *Config) { c.Timeout = 5 * time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-heard; cancel() }()
	if err := patient.Deliver(ctx, delivery()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %T %v", err, err)
	}
	go func() { _ = (<-heard).Respond([]byte("thank you")) }()
	wantRejected(t, patient.Deliver(t.Context(), delivery()), false, "is no stream")
}

func TestUnreachable(t *testing.T) {
	b := serve(t, nil)
	b.stop()
	gone := open(t, b.ClientURL(), nil)
	wantDown(t, gone.Deliver(t.Context(), delivery()), "connection refused", b.ClientURL())
	wantDown(t, open(t, "nats://nobody.invalid", nil).Deliver(t.Context(), delivery()), "nobody.invalid")
	silent := "nats://" + sinktest.Listen(t, func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString(0) })
	s := open(t, silent, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	wantDown(t, s.Deliver(t.Context(), delivery()), "200ms")
	patient := open(t, silent, func(c *Config) { c.Timeout = 5 * time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
	if err := patient.Deliver(ctx, delivery()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %T %v", err, err)
	}
	b.start()
	b.stream(all())
	deliver(t, gone, delivery())
	garbage := "nats://" + sinktest.Listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	wantDown(t, open(t, garbage, nil).Deliver(t.Context(), delivery()), "cannot be reached")
}

// TestOneSilentServer: one of several servers that says nothing does not keep a delivery from
// the others.
func TestOneSilentServer(t *testing.T) {
	b := serve(t, nil)
	stream := b.stream(all())
	silent := "nats://" + sinktest.Listen(t, func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString(0) })
	for i := range 6 { // in whichever order they are tried
		s := open(t, silent, func(c *Config) {
			c.Servers, c.Timeout = append(c.Servers, b.ClientURL()), 4*time.Second
		})
		deliver(t, s, named(fmt.Sprint("o", i)))
	}
	if got := messages(t, stream); len(got) != 6 {
		t.Errorf("%d messages are stored", len(got))
	}
}

// TestRefusedAddresses: link-local addresses are not dialled, nor public ones without TLS.
func TestRefusedAddresses(t *testing.T) {
	metadata := open(t, "nats://169.254.169.254:80", nil)
	wantDown(t, metadata.Deliver(t.Context(), delivery()), "169.254.169.254", "link-local", "allowAddresses")
	public := open(t, "nats://192.88.99.1:4222", nil)
	wantDown(t, public.Deliver(t.Context(), delivery()), "192.88.99.1", "use TLS")
}

// TestStalled: a server that reads nothing more holds up nobody who is asked to stop, nor the
// end of the sink.
func TestStalled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := "nats://" + sinktest.Listen(t, func(c net.Conn) {
		_, _ = fmt.Fprintf(c, "INFO {\"server_id\":\"x\",\"version\":\"2.15.0\",\"headers\":true,\"max_payload\":%d}\r\n", 1<<30)
		for r := bufio.NewReader(c); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "PING") {
				_, _ = c.Write([]byte("PONG\r\n"))
				break
			}
		}
		time.Sleep(500 * time.Millisecond) // while it is written until nothing more fits
		cancel()
		<-t.Context().Done() // and not a byte is read
	})
	s := open(t, url, func(c *Config) { c.Timeout = 5 * time.Minute })
	large := delivery()
	large.Object = json.RawMessage(`"` + strings.Repeat("x", 64<<20) + `"`)
	began := time.Now()
	if err := s.Deliver(ctx, large); !errors.Is(err, context.Canceled) {
		t.Errorf("error %T %v", err, err)
	}
	_ = s.Close()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("held up for %s", took)
	}
}
