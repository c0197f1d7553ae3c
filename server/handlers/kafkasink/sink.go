package kafkasink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/cloudevent"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Sink produces deliveries to a topic.
type Sink struct {
	client   *kgo.Client
	dialer   *dialer
	loggedIn bool // a user and a password are given
	brokers  []string
	topic    string
	mode     cloudevent.Mode
	maxBytes int
	timeout  time.Duration
	attempts attempts
	// together: what has one of many shares may be in one batch with others; who has all is
	// alone.
	together *semaphore.Weighted
	// well: the last record was written.
	well atomic.Bool
}

var _ handlers.Sink = (*Sink)(nil)

const (
	shares = 1 << 20

	// retries are those of a record that a broker refused for now, about two seconds. What
	// takes longer is the business of the queue.
	retries    = 5
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
	// metadataAge is how long to wait before asking again who leads.
	metadataAge = 250 * time.Millisecond
	// minPatience is the least time that a broker may be silent before its connection is given
	// up.
	minPatience = 100 * time.Millisecond
	// maxBuffered bounds the records that are sent and not acknowledged.
	maxBuffered = 64 << 20
)

// New checks c and reads its files. It does not connect. What is wrong is told as one
// sinkconf.Mistake each, joined.
func New(c Config) (*Sink, error) {
	var m sinkconf.Mistakes
	if c.check(&m); len(m) == 0 {
		c.CheckWhole(&m)
	}
	s := &Sink{
		brokers: c.Brokers, topic: c.Topic, mode: c.Mode, maxBytes: c.MaxMessageBytes, timeout: m.Timeout(c.Timeout),
		together: semaphore.NewWeighted(shares),
	}
	if s.maxBytes == 0 {
		s.maxBytes = DefaultMaxMessageBytes
	}
	s.dialer = newDialer(&m, c, s.timeout)
	login := newLogin(&m, c)
	s.loggedIn = login != nil
	if err := m.Err(); err != nil {
		return nil, err
	}
	options := []kgo.Opt{
		kgo.ClientID("informerd"), kgo.SeedBrokers(c.Brokers...), kgo.DefaultProduceTopic(c.Topic), kgo.Dialer(s.dialer.dial),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(int32(s.maxBytes + overhead)),
		kgo.MaxBufferedBytes(max(maxBuffered, 2*s.maxBytes)),
		kgo.RecordRetries(retries), kgo.UnknownTopicRetries(1), kgo.RetryBackoffFn(backoff),
		kgo.MetadataMinAge(metadataAge), kgo.ProduceRequestTimeout(s.timeout), kgo.RequestTimeoutOverhead(max(s.dialer.timeout, minPatience)),
		kgo.DisableClientMetrics(), // brokers may ask for them
	}
	if login != nil {
		options = append(options, kgo.SASL(login))
	}
	var err error
	if s.client, err = kgo.NewClient(options...); err != nil {
		return nil, fmt.Errorf("make a client of Kafka: %w", err)
	}
	return s, nil
}

// overhead is what a batch of one record has beside it, at most.
const overhead = 512

func backoff(failures int) time.Duration {
	return min(minBackoff<<min(max(failures-1, 0), 10), maxBackoff)
}

// Close ends connections. Records that are not acknowledged may or may not be written.
func (s *Sink) Close() error {
	s.client.Close()
	return nil
}

// Deliver produces d and waits until it is written.
func (s *Sink) Deliver(ctx context.Context, d *handlers.Delivery) error {
	r, err := s.record(ctx, d)
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err = s.deliver(within, d.ID, r, 1)
	if errors.Is(err, kerr.MessageTooLarge) {
		// It may have been in one batch with others: which of them is too large?
		err = s.deliver(within, d.ID, r, shares)
	}
	switch {
	case err == nil:
		s.well.Store(true)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return s.failed(err)
}

// deliver writes r, with so many shares of what is written together.
func (s *Sink) deliver(ctx context.Context, id string, r *kgo.Record, share int64) error {
	if err := s.together.Acquire(ctx, share); err != nil {
		return err
	}
	defer s.together.Release(share)
	// After a failure the client would try for long: it is asked first whether anybody is there.
	if !s.well.Load() {
		if err := s.client.Ping(ctx); err != nil {
			return err
		}
	}
	key := string(r.Key)
	if before := s.attempts.of(key); before != nil {
		if !before.wait(ctx) {
			return ctx.Err()
		}
		s.attempts.forget(key)
		if before.err == nil && before.id == id {
			return nil
		}
	}
	a := s.attempts.begin(key, id)
	s.client.Produce(ctx, r, func(_ *kgo.Record, err error) { a.end(err) })
	if !a.wait(ctx) {
		return ctx.Err() // and the attempt stays known
	}
	s.attempts.forget(key)
	return a.err
}

func (s *Sink) names() string { return strings.Join(s.brokers, ", ") }
