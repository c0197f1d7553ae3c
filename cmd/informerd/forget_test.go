package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// awayStore is a store that is out of reach for its first calls.
type awayStore struct {
	store
	mu     sync.Mutex
	away   int
	saved  []cache.Saved
	erased []cache.Resource
}

func (s *awayStore) Saved() ([]cache.Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away--; s.away >= 0 {
		return nil, fmt.Errorf("%w: no route", cache.ErrAway)
	}
	return s.saved, nil
}

func (s *awayStore) Erase(r cache.Resource) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away--; s.away >= 0 {
		return cache.ErrAway
	}
	s.erased = append(s.erased, r)
	return nil
}

func (s *awayStore) Sweep() error { return nil }

// TestForgetsWhenBack: what the configuration leaves out is deleted when the snapshot is in
// reach again, as the configuration is by then.
func TestForgetsWhenBack(t *testing.T) {
	left := cache.Resource{Cluster: "gone", GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"}}
	db := &awayStore{away: 3, saved: []cache.Saved{{Spec: cache.Spec{Resource: left, Kind: "Pod", Watch: true}}}}
	f := newForgetter(db, func() ([]config.Rule, []config.Cluster, bool) { return nil, nil, true }, slog.New(slog.DiscardHandler))
	f.retry = time.Millisecond
	f.forget(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		db.mu.Lock()
		erased := len(db.erased)
		db.mu.Unlock()
		if erased == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is not deleted")
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if db.erased[0] != left {
		t.Errorf("%v is deleted", db.erased)
	}
}
