package churn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t, "a", "b", "c")
		c := open(t, kv)
		start := time.Now()
		if n, err := c.Run(t.Context(), 100, 2*time.Second); n != 200 || err != nil {
			t.Fatalf("Run() = %d, %v; want 200", n, err)
		}
		if took := time.Since(start); took < 1900*time.Millisecond || took > 2*time.Second {
			t.Errorf("200 changes at 100 a second took %v", took)
		}
		for name, want := range map[string]string{"a": "198", "b": "199", "c": "200"} {
			pod := kv.pod(t, name)
			if got := pod.Annotations[Annotation]; got != want {
				t.Errorf("%s has change %q, want %q", name, got, want)
			}
			if pod.Annotations["kept"] != name || pod.Spec.NodeName != "node-"+name {
				t.Errorf("%s lost what it had: %v", name, pod)
			}
		}
	})
}

// TestRunCatchesUp: a slow etcd makes changes late, not fewer.
func TestRunCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := newStore(t, "a")
		c := open(t, kv)
		kv.before = func() { time.Sleep(time.Second) }
		if n, err := c.Run(t.Context(), 10, 2*time.Second); n != 20 || err != nil {
			t.Errorf("Run() = %d, %v; want 20", n, err)
		}
	})
}

func TestOthersChange(t *testing.T) {
	kv := newStore(t, "a", "b")
	c := open(t, kv)
	pod := kv.pod(t, "a")
	pod.Labels = map[string]string{"by": "another"}
	kv.put(t, pod)
	kv.remove("b")
	for range 3 {
		if err := c.change(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pod = kv.pod(t, "a")
	if pod.Labels["by"] != "another" || pod.Annotations[Annotation] != "3" {
		t.Errorf("a is %v, want both changes in it", pod.ObjectMeta)
	}
	if _, exists := kv.entries[registry+"shop/b"]; exists || c.Pods() != 1 {
		t.Errorf("b was deleted, and is there again: %d pods", c.Pods())
	}
	kv.remove("a")
	if err := c.change(t.Context()); err == nil {
		t.Error("no error when all pods are gone")
	}
}

func TestServe(t *testing.T) {
	for orders, want := range map[string]string{
		"1000 5ms\n2000 2ms\n": "",
		"200\n":                "like \"200 5s\"",
		"0 5s\n":               "like \"200 5s\"",
		"200 5s now\n":         "like \"200 5s\"",
		"200 soon\n":           "invalid duration",
	} {
		var out strings.Builder
		err := open(t, newStore(t, "a")).Serve(t.Context(), strings.NewReader(orders), &out)
		var replies []reply
		for d := json.NewDecoder(strings.NewReader(out.String())); d.More(); {
			var r reply
			if err := d.Decode(&r); err != nil {
				t.Fatal(err)
			}
			replies = append(replies, r)
		}
		if len(replies) < 2 || replies[0].Objects != 1 {
			t.Errorf("%q: replies %+v, want one pod first", orders, replies)
			continue
		}
		if want == "" {
			if err != nil || len(replies) != 3 || replies[1].Changes != 5 || replies[2].Changes != 4 {
				t.Errorf("%q: %+v, %v; want 5 and 4 changes", orders, replies, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || replies[1].Error != err.Error() {
			t.Errorf("%q: %+v, %v; want %q", orders, replies, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	kv := newStore(t)
	if _, err := New(t.Context(), kv, "shop"); err == nil || !strings.Contains(err.Error(), `"shop"`) {
		t.Errorf("no pods: %v", err)
	}
	kv.entries[registry+"shop/a"] = &mvccpb.KeyValue{Key: []byte(registry + "shop/a"), Value: []byte(`{"kind":"Pod"}`)}
	if _, err := New(t.Context(), kv, "shop"); err == nil || !strings.Contains(err.Error(), "not stored as protobuf") {
		t.Errorf("JSON: %v", err)
	}
}

func open(t *testing.T, kv *store) *Churn {
	t.Helper()
	c, err := New(t.Context(), kv, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// store is the part of etcd that a Churn uses.
type store struct {
	clientv3.KV
	entries  map[string]*mvccpb.KeyValue
	revision int64
	before   func() // called before each transaction
}

func newStore(t *testing.T, names ...string) *store {
	s := &store{entries: map[string]*mvccpb.KeyValue{}, before: func() {}}
	for _, name := range names {
		s.put(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"kept": name}},
			Spec:       corev1.PodSpec{NodeName: "node-" + name},
		})
	}
	return s
}

func (s *store) put(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	e := &stored{pod: *pod, unknown: runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "Pod"}}}
	value, err := e.encode()
	if err != nil {
		t.Fatal(err)
	}
	s.write(registry+"shop/"+pod.Name, value)
}

func (s *store) write(key string, value []byte) {
	s.revision++
	s.entries[key] = &mvccpb.KeyValue{Key: []byte(key), Value: value, ModRevision: s.revision}
}

func (s *store) remove(name string) { delete(s.entries, registry+"shop/"+name) }

func (s *store) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	var e stored
	entry := s.entries[registry+"shop/"+name]
	if err := e.decode(entry.Value, entry.ModRevision); err != nil {
		t.Fatal(err)
	}
	return &e.pod
}

func (s *store) Get(_ context.Context, key string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r := &clientv3.GetResponse{}
	for k, e := range s.entries {
		if strings.HasPrefix(k, key) {
			r.Kvs = append(r.Kvs, e)
		}
	}
	slices.SortFunc(r.Kvs, func(a, b *mvccpb.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return r, nil
}

func (s *store) Txn(context.Context) clientv3.Txn { return &txn{store: s} }

type txn struct {
	store *store
	cmp   clientv3.Cmp
	put   clientv3.Op
	get   clientv3.Op
}

func (t *txn) If(c ...clientv3.Cmp) clientv3.Txn  { t.cmp = c[0]; return t }
func (t *txn) Then(o ...clientv3.Op) clientv3.Txn { t.put = o[0]; return t }
func (t *txn) Else(o ...clientv3.Op) clientv3.Txn { t.get = o[0]; return t }

func (t *txn) Commit() (*clientv3.TxnResponse, error) {
	t.store.before()
	key := string(t.put.KeyBytes())
	want := t.cmp.TargetUnion.(*etcdserverpb.Compare_ModRevision).ModRevision
	now := t.store.entries[key]
	if now != nil && now.ModRevision == want {
		t.store.write(key, t.put.ValueBytes())
		return &clientv3.TxnResponse{Succeeded: true, Header: &etcdserverpb.ResponseHeader{Revision: t.store.revision}}, nil
	}
	found := &etcdserverpb.RangeResponse{}
	if now != nil {
		found.Kvs = append(found.Kvs, now)
	}
	return &clientv3.TxnResponse{Responses: []*etcdserverpb.ResponseOp{
		{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: found}},
	}}, nil
}
