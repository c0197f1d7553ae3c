// Package history tells the history of a cluster as etcd has it: every change of
// every object, with its revision, in order. It is what answers of the API
// server, and of its replicas, are compared with.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// registry is where the API server keeps everything.
	registry = "/registry/"
	// progressInterval is how often etcd is asked how far the history is told.
	progressInterval = 200 * time.Millisecond
)

// Line is one line of a history. The first has only Head and Compacted; those
// with Progress say that everything up to there has been told; all others are
// changes.
type Line struct {
	Head      int64 `json:"head,omitempty"`      // the revision at the start
	Compacted int64 `json:"compacted,omitempty"` // older changes are not known
	Progress  int64 `json:"progress,omitempty"`

	Key      string `json:"key,omitempty"`
	Revision int64  `json:"revision,omitempty"` // of this change
	Created  int64  `json:"created,omitempty"`  // of the change that created it
	Deleted  bool   `json:"deleted,omitempty"`
	// Object is the JSON of what was stored, without a resourceVersion. It is
	// missing of what is deleted, and of types this program does not know.
	Object json.RawMessage `json:"object,omitempty"`
}

// Options of a history.
type Options struct {
	// Prefixes are the keys to tell of, below /registry/; empty: all.
	Prefixes []string
}

// Follow writes the history to out, from its beginning on and until ctx ends. A
// history that was compacted begins with the objects of its oldest revision. It
// is an error if it is compacted faster than it is read.
func Follow(ctx context.Context, etcd *clientv3.Client, opts Options, out io.Writer) error {
	t := &teller{out: json.NewEncoder(out), prefixes: opts.Prefixes}
	head, err := etcd.Get(ctx, registry, clientv3.WithCountOnly(), clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read the revision: %w", err)
	}
	from, err := oldest(ctx, etcd)
	if err != nil {
		return err
	}
	if err := t.out.Encode(Line{Head: head.Header.Revision, Compacted: from}); err != nil {
		return err
	}
	if from > 0 {
		if err := t.base(ctx, etcd, from); err != nil {
			return err
		}
	}
	return t.follow(ctx, etcd, from+1)
}

// oldest is the last compacted revision, 0 if there is none. Only a watch is told
// which it is.
func oldest(ctx context.Context, etcd *clientv3.Client) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	askOften(ctx, etcd)
	for r := range etcd.Watch(ctx, "informerd-history-probe", clientv3.WithRev(1)) {
		switch {
		case r.CompactRevision > 0:
			return r.CompactRevision, nil
		case r.Err() != nil:
			return 0, fmt.Errorf("ask for the oldest revision: %w", r.Err())
		case r.IsProgressNotify():
			return 0, nil
		}
	}
	return 0, ctx.Err()
}

// askOften asks etcd how far watches have come until ctx ends. It does not answer
// while one of them has not caught up.
func askOften(ctx context.Context, etcd *clientv3.Client) {
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(progressInterval):
				_ = etcd.RequestProgress(ctx) // asked again
			}
		}
	}()
}

type teller struct {
	out      *json.Encoder
	prefixes []string
}

// base tells the objects as of a revision.
func (t *teller) base(ctx context.Context, etcd *clientv3.Client, revision int64) error {
	all, err := etcd.Get(ctx, registry, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return fmt.Errorf("read everything at revision %d: %w", revision, err)
	}
	for _, kv := range all.Kvs {
		if err := t.change(kv, false); err != nil {
			return err
		}
	}
	return nil
}

func (t *teller) follow(ctx context.Context, etcd *clientv3.Client, from int64) error {
	askOften(ctx, etcd)
	for r := range etcd.Watch(ctx, registry, clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if err := r.Err(); errors.Is(err, rpctypes.ErrCompacted) {
			return fmt.Errorf("the history was compacted up to %d before it was read", r.CompactRevision)
		} else if err != nil {
			return fmt.Errorf("watch etcd: %w", err)
		}
		for _, e := range r.Events {
			if err := t.change(e.Kv, e.Type == mvccpb.DELETE); err != nil {
				return err
			}
		}
		if r.IsProgressNotify() {
			// Told also if nothing is new: that is news, too.
			if err := t.out.Encode(Line{Progress: r.Header.Revision}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *teller) change(kv *mvccpb.KeyValue, deleted bool) error {
	key := string(kv.Key)
	if !t.wanted(key) {
		return nil
	}
	line := Line{Key: key, Revision: kv.ModRevision, Created: kv.CreateRevision, Deleted: deleted}
	if !deleted {
		line.Object = object(kv.Value)
	}
	return t.out.Encode(line)
}

func (t *teller) wanted(key string) bool {
	if len(t.prefixes) == 0 {
		return true
	}
	for _, p := range t.prefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// magic begins every object that the API server stores as protobuf
// (apimachinery/pkg/runtime/serializer/protobuf).
var magic = []byte("k8s\x00")

// object is a stored object as JSON, nil if it cannot be read.
func object(value []byte) json.RawMessage {
	if !bytes.HasPrefix(value, magic) {
		if json.Valid(value) {
			return value
		}
		return nil
	}
	o, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), value)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return data
}
