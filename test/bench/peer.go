package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// peerCommand is the hidden subcommand under which this program starts itself as
// a peer: a client in a process of its own.
//
// A peer syncs at once, writes a reply, and then answers one line of orders with
// one reply each until its stdin ends:
//
//	heap                      how much heap it holds
//	query DURATION APP,...    how often it answers which pods an app has
//	ask QUESTION              one of questions; only of the peer "list"
//	relist cut                lets no watch through; only of the peer "relist"
//	relist compared|full      lets its watch expire, and says how long the relist took
const peerCommand = "peer"

// peers are the subjects that run within this program, by name.
var peers = map[string]func(context.Context, *rest.Config) (*synced, error){
	"get":                syncGet,
	"dynamic":            syncDynamic,
	"dynamic-app":        syncDynamicApp,
	"controller-runtime": syncRuntime,
	"typed":              syncTyped,
	"list":               startLister,
	"cache":              syncCache,
	"cache-all":          syncCacheAll,
	"relist":             syncRelist,
	"relay":              startRelay,
}

// synced is a peer that has what it came for.
type synced struct {
	objects int   // how many it holds
	bytes   int64 // how many it has read, if it only reads
	// address is the URL at which it serves, if it does.
	address string
	// answer appends the JSON of all pods of an app to dst and says how many
	// they are; nil if the peer has no answers. It is safe for concurrent use.
	answer func(dst []byte, app string) ([]byte, int, error)
	// ask answers a question about all pods; nil if the peer cannot.
	ask func(context.Context, question) (answer, error)
	// relist obeys the order of that name; nil if the peer knows none.
	relist func(ctx context.Context, how string) error
	// held is kept until the end, so that it is on the heap when that is measured.
	held any
}

// reply is one line that a peer writes.
type reply struct {
	Objects   int      `json:"objects,omitempty"`
	Address   string   `json:"address,omitempty"`   // of a peer that serves
	Addresses []string `json:"addresses,omitempty"` // of one that serves several clusters
	Bytes     int64    `json:"bytes,omitempty"`
	Heap      float64  `json:"heap,omitempty"`
	Requests  int      `json:"requests,omitempty"`
	Changes   int      `json:"changes,omitempty"` // of devcluster churn
	Seconds   float64  `json:"seconds,omitempty"`
	Answer    answer   `json:"answer,omitempty"`
	Error     string   `json:"error,omitempty"`
}

// runPeer is the peer's side. It returns the exit code.
func runPeer(ctx context.Context, args []string, in io.Reader, out io.Writer) int {
	replies := json.NewEncoder(out)
	err := servePeer(ctx, args, in, replies)
	if err == nil {
		return 0
	}
	_ = replies.Encode(reply{Error: err.Error()})
	return 1
}

func servePeer(ctx context.Context, args []string, in io.Reader, replies *json.Encoder) error {
	if len(args) != 2 {
		return errors.New("which peer, with which kubeconfig?")
	}
	sync, ok := peers[args[0]]
	if !ok {
		return fmt.Errorf("there is no peer %q", args[0])
	}
	rc, err := loadKubeconfig(args[1], "bench-"+args[0])
	if err != nil {
		return err
	}
	before := heapInUse()
	s, err := sync(ctx, rc)
	if err != nil {
		return err
	}
	if err := replies.Encode(reply{Objects: s.objects, Bytes: s.bytes, Address: s.address}); err != nil {
		return err
	}
	orders := bufio.NewScanner(in)
	orders.Buffer(nil, 1<<20)
	for orders.Scan() {
		r, err := s.obey(ctx, strings.Fields(orders.Text()), before)
		if err != nil {
			return err
		}
		if err := replies.Encode(r); err != nil {
			return err
		}
	}
	runtime.KeepAlive(s)
	return orders.Err()
}

func (s *synced) obey(ctx context.Context, order []string, before float64) (reply, error) {
	switch {
	case len(order) == 1 && order[0] == "heap":
		return reply{Heap: heapInUse() - before}, nil
	case len(order) == 3 && order[0] == "query" && s.answer != nil:
		return s.obeyQuery(ctx, order[1], order[2])
	case len(order) == 2 && order[0] == "ask" && s.ask != nil:
		return s.obeyAsk(ctx, order[1])
	case len(order) == 2 && order[0] == "relist" && s.relist != nil:
		start := time.Now()
		err := s.relist(ctx, order[1])
		return reply{Seconds: time.Since(start).Seconds()}, err
	default:
		return reply{}, fmt.Errorf("no such order: %q", order)
	}
}

func (s *synced) obeyQuery(ctx context.Context, duration, apps string) (reply, error) {
	d, err := time.ParseDuration(duration)
	if err != nil {
		return reply{}, err
	}
	load, err := runLoad(ctx, strings.Split(apps, ","), d, func(_ context.Context, buf []byte, app string) ([]byte, error) {
		buf, _, err := s.answer(buf[:0], app)
		return buf, err
	})
	return reply{Requests: load.requests, Seconds: load.seconds}, err
}

func (s *synced) obeyAsk(ctx context.Context, name string) (reply, error) {
	q, err := findQuestion(name)
	if err != nil {
		return reply{}, err
	}
	start := time.Now()
	a, err := s.ask(ctx, q)
	return reply{Seconds: time.Since(start).Seconds(), Answer: a}, err
}

// heapInUse is what is reachable. It takes two collections to empty a sync.Pool.
func heapInUse() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
