// Package churn changes pods at a steady rate without the API server's help: it
// writes to etcd what the API server would have written. An update through the
// API costs the API server several milliseconds of CPU, most of them for
// managedFields, so that a small machine that also runs what is tested reaches
// some 300 a second. Whoever watches sees no difference: the watch cache of the
// API server follows etcd.
package churn

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Annotation holds the number of the change that made a pod what it is.
	Annotation = "devcluster.informerd.io/change"
	// registry is where the API server keeps pods, unless told otherwise.
	registry = "/registry/pods/"
)

// magic begins every object that the API server stores as protobuf
// (apimachinery/pkg/runtime/serializer/protobuf).
var magic = []byte("k8s\x00")

// Churn changes the pods of one namespace, one after the other. It is not safe
// for concurrent use.
type Churn struct {
	kv   clientv3.KV
	pods []*stored
	last int // number of the last change
}

// stored is a pod as etcd has it.
type stored struct {
	key      string
	revision int64 // of its last write
	unknown  runtime.Unknown
	pod      corev1.Pod
}

// New reads the pods of a namespace, which must have some. Pods that are made
// later are left alone.
func New(ctx context.Context, kv clientv3.KV, namespace string) (*Churn, error) {
	found, err := kv.Get(ctx, registry+namespace+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read pods of %s: %w", namespace, err)
	}
	c := &Churn{kv: kv}
	for _, entry := range found.Kvs {
		s := &stored{key: string(entry.Key)}
		if err := s.decode(entry.Value, entry.ModRevision); err != nil {
			return nil, err
		}
		c.pods = append(c.pods, s)
	}
	if len(c.pods) == 0 {
		return nil, fmt.Errorf("there are no pods in namespace %q", namespace)
	}
	return c, nil
}

// Pods is how many pods are changed in turn.
func (c *Churn) Pods() int { return len(c.pods) }

// Run changes rate pods a second for as long as duration, and returns how many
// changes it made. One that comes late is made up for. A pod that somebody else
// has changed keeps that change; one that is gone is left out from then on.
func (c *Churn) Run(ctx context.Context, rate int, duration time.Duration) (int, error) {
	start := time.Now()
	changes := 0
	for {
		due := time.Duration(changes) * time.Second / time.Duration(rate)
		if due >= duration {
			return changes, nil
		}
		if err := sleep(ctx, time.Until(start.Add(due))); err != nil {
			return changes, err
		}
		if err := c.change(ctx); err != nil {
			return changes, err
		}
		changes++
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// change makes one change, of the pod whose turn it is.
func (c *Churn) change(ctx context.Context) error {
	c.last++
	for len(c.pods) > 0 {
		n := c.last % len(c.pods)
		exists, err := c.pods[n].annotate(ctx, c.kv, strconv.Itoa(c.last))
		if err != nil || exists {
			return err
		}
		c.pods = slices.Delete(c.pods, n, n+1)
	}
	return errors.New("all pods are gone")
}

// annotate writes the number of a change into a pod, and reports whether there
// still is such a pod.
func (s *stored) annotate(ctx context.Context, kv clientv3.KV, change string) (exists bool, err error) {
	for {
		metav1.SetMetaDataAnnotation(&s.pod.ObjectMeta, Annotation, change)
		value, err := s.encode()
		if err != nil {
			return false, err
		}
		txn, err := kv.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.key), "=", s.revision)).
			Then(clientv3.OpPut(s.key, string(value))).
			Else(clientv3.OpGet(s.key)).
			Commit()
		if err != nil {
			return false, fmt.Errorf("write %s: %w", s.key, err)
		}
		if txn.Succeeded {
			s.revision = txn.Header.Revision
			return true, nil
		}
		now := txn.Responses[0].GetResponseRange().Kvs
		if len(now) == 0 {
			return false, nil
		}
		if err := s.decode(now[0].Value, now[0].ModRevision); err != nil {
			return false, err
		}
	}
}

func (s *stored) decode(value []byte, revision int64) error {
	body, ok := bytes.CutPrefix(value, magic)
	if !ok {
		return fmt.Errorf("%s is not stored as protobuf", s.key)
	}
	s.revision, s.unknown, s.pod = revision, runtime.Unknown{}, corev1.Pod{}
	if err := s.unknown.Unmarshal(body); err != nil {
		return fmt.Errorf("decode %s: %w", s.key, err)
	}
	if err := s.pod.Unmarshal(s.unknown.Raw); err != nil {
		return fmt.Errorf("decode %s: %w", s.key, err)
	}
	return nil
}

func (s *stored) encode() ([]byte, error) {
	var err error
	if s.unknown.Raw, err = s.pod.Marshal(); err != nil {
		return nil, err
	}
	body, err := s.unknown.Marshal()
	return slices.Concat(magic, body), err
}

// reply is one line that Serve writes.
type reply struct {
	Objects int     `json:"objects,omitempty"` // pods there are; in the first line
	Changes int     `json:"changes,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// Serve obeys orders, lines like "200 5s": so many changes a second for so long.
// It replies with a line of JSON to each when it is carried out, and with one
// before the first, when it has read the pods. It returns at the end of orders.
func (c *Churn) Serve(ctx context.Context, orders io.Reader, replies io.Writer) error {
	out := json.NewEncoder(replies)
	if err := out.Encode(reply{Objects: c.Pods()}); err != nil {
		return err
	}
	lines := bufio.NewScanner(orders)
	for lines.Scan() {
		r, err := c.obey(ctx, lines.Text())
		if err != nil {
			return errors.Join(err, out.Encode(reply{Error: err.Error()}))
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (c *Churn) obey(ctx context.Context, order string) (reply, error) {
	rate, duration, err := parseOrder(order)
	if err != nil {
		return reply{}, err
	}
	start := time.Now()
	changes, err := c.Run(ctx, rate, duration)
	return reply{Changes: changes, Seconds: time.Since(start).Seconds()}, err
}

func parseOrder(order string) (rate int, duration time.Duration, err error) {
	var text, rest string
	if n, _ := fmt.Sscan(order, &rate, &text, &rest); n != 2 || rate < 1 {
		return 0, 0, fmt.Errorf("order %q: want changes a second and a duration, like \"200 5s\"", order)
	}
	if duration, err = time.ParseDuration(text); err != nil {
		return 0, 0, fmt.Errorf("order %q: %w", order, err)
	}
	return rate, duration, nil
}
