package kafkasink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/informerd/informerd/server/handlers/sinktest"
)

func portsOf(t *testing.T, c *kfake.Cluster) (ports []int) {
	t.Helper()
	for _, address := range c.ListenAddrs() {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := strconv.Atoi(port)
		ports = append(ports, n)
	}
	return ports
}

// TestNoTopic: a topic that does not exist holds up all until it does, also one that is made
// anew.
func TestNoTopic(t *testing.T) {
	c := serve(t)
	s := open(t, c, func(c *Config) { c.Topic = "later" })
	wantDown(t, s.Deliver(t.Context(), delivery()), "there is no topic later", "create it")
	if err := c.CreateTopic("later", 1, nil); err != nil {
		t.Fatal(err)
	}
	retry(t, s, delivery())
	if err := c.DeleteTopic("later"); err != nil {
		t.Fatal(err)
	}
	wantDown(t, s.Deliver(t.Context(), delivery()), "topic later")
	if err := c.CreateTopic("later", 2, nil); err != nil {
		t.Fatal(err)
	}
	retry(t, s, delivery())
	n := int64(0)
	for _, p := range c.PartitionInfos("later") {
		n += p.HighWatermark
	}
	if n == 0 {
		t.Error("nothing was written")
	}
}

// TestNoLeader: a partition that nobody leads is tried for a while, and then all wait.
func TestNoLeader(t *testing.T) {
	c := serve(t)
	s := open(t, c, nil)
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotLeaderForPartition, Count: -1})
	wantDown(t, s.Deliver(t.Context(), delivery()), "NOT_LEADER")
	fault.Remove()
	retry(t, s, delivery())
	if got := records(t, c); len(got) != 1 {
		t.Errorf("%d records are written", len(got))
	}
}

// TestRefusedRecord: what Kafka says of one record holds up no other.
func TestRefusedRecord(t *testing.T) {
	c := serve(t)
	s := open(t, c, nil)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord})
	wantRejected(t, s.Deliver(t.Context(), delivery()), false, "INVALID_RECORD")
	deliver(t, s, delivery())
}

// TestTooLarge: what the configuration or the topic never takes is given up at once; what was
// in one batch with it is written.
func TestTooLarge(t *testing.T) {
	large := named("large")
	large.Object = json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	c := serve(t)
	s := open(t, c, func(c *Config) { c.MaxMessageBytes = 40 << 10 })
	wantRejected(t, s.Deliver(t.Context(), large), true, "maxMessageBytes")
	if err := c.CreateTopic("small", 1, map[string]string{"max.message.bytes": "8000"}); err != nil {
		t.Fatal(err)
	}
	s = open(t, c, func(c *Config) { c.Topic = "small" })
	noise := strings.Builder{} // which does not become smaller
	for i := range 8000 {
		_, _ = fmt.Fprintf(&noise, "%08x", i*2654435761)
	}
	large.Object = json.RawMessage(`"` + noise.String() + `"`)
	var workers sync.WaitGroup
	for i := range 40 {
		workers.Go(func() {
			d := named(fmt.Sprint("o", i))
			d.Object = json.RawMessage(`"` + noise.String()[i*100:i*100+1000] + `"`)
			if err := s.Deliver(t.Context(), d); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		})
		if i%10 == 0 {
			workers.Go(func() {
				d := *large
				d.Name = fmt.Sprint("large", i)
				wantRejected(t, s.Deliver(t.Context(), &d), true, "max.message.bytes")
			})
		}
	}
	workers.Wait()
	if n := c.PartitionInfo("small", 0).HighWatermark; n != 40 {
		t.Errorf("%d records are written", n)
	}
}

func TestUnreachable(t *testing.T) {
	c := serve(t)
	gone := c.ListenAddrs()
	c.Close()
	wantDown(t, openAt(t, gone, nil).Deliver(t.Context(), delivery()), "connection refused", gone[0])
	wantDown(t, openAt(t, []string{"nobody.invalid:9092"}, nil).Deliver(t.Context(), delivery()), "nobody.invalid")
	silent := []string{sinktest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })}
	s := openAt(t, silent, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	wantDown(t, s.Deliver(t.Context(), delivery()), "200ms")
	patient := openAt(t, silent, func(c *Config) { c.Timeout = 5 * time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
	if err := patient.Deliver(ctx, delivery()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %T %v", err, err)
	}
	garbage := []string{sinktest.Listen(t, func(c net.Conn) { _, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })}
	wantDown(t, openAt(t, garbage, nil).Deliver(t.Context(), delivery()), "did not take the record")
}

// TestOneSilentBroker: one of several brokers that says nothing does not keep a delivery from
// the others.
func TestOneSilentBroker(t *testing.T) {
	c := serve(t)
	silent := []string{sinktest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })}
	s := openAt(t, append(silent, c.ListenAddrs()...), nil)
	deliver(t, s, delivery())
}

// TestRefusedAddresses: link-local addresses are not dialled, nor public ones without TLS,
// whoever names them.
func TestRefusedAddresses(t *testing.T) {
	metadata := openAt(t, []string{"169.254.169.254:80"}, nil)
	wantDown(t, metadata.Deliver(t.Context(), delivery()), "169.254.169.254", "link-local", "allowAddresses")
	public := openAt(t, []string{"192.88.99.1:9092"}, nil)
	wantDown(t, public.Deliver(t.Context(), delivery()), "192.88.99.1", "use TLS")

	c := serve(t)
	c.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return elsewhere(request.(*kmsg.MetadataRequest), "169.254.169.254"), nil, true
	})
	s := open(t, c, func(c *Config) { c.Timeout = 3 * time.Second })
	wantDown(t, s.Deliver(t.Context(), delivery()), "169.254.169.254", "link-local")
}

// elsewhere is an answer that all is led by a broker at host.
func elsewhere(q *kmsg.MetadataRequest, host string) kmsg.Response {
	a := q.ResponseKind().(*kmsg.MetadataResponse)
	broker := kmsg.NewMetadataResponseBroker()
	broker.NodeID, broker.Host, broker.Port = 7, host, 80
	a.Brokers, a.ControllerID = append(a.Brokers, broker), 7
	for _, asked := range q.Topics {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.TopicID = asked.Topic, [16]byte{1}
		partition := kmsg.NewMetadataResponseTopicPartition()
		partition.Leader, partition.Replicas, partition.ISR = 7, []int32{7}, []int32{7}
		topic.Partitions = append(topic.Partitions, partition)
		a.Topics = append(a.Topics, topic)
	}
	return a
}
