package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func claimHandler() Handler {
	h := handler(nil)
	h.Sink, h.SinkKind = nil, ""
	return h
}

func (w *world) claim(o ClaimOptions) []Claimed {
	w.t.Helper()
	o.Owner = "me"
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	all, err := w.manager.Claim(w.t.Context(), "h", o)
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestClaims: a key is worked on by one at a time; what was acknowledged is not to be had
// again, what was given back is, after its time, and what changed meanwhile is.
func TestClaims(t *testing.T) {
	w := newWorld(t)
	w.start(claimHandler())
	if got := w.claim(ClaimOptions{Max: 1, Wait: 10 * time.Millisecond}); len(got) != 0 {
		t.Errorf("claimed %v of nothing", got)
	}
	for i := range 3 {
		w.truth.put(fmt.Sprint("o", i), "red")
	}
	w.all()
	var all []Claimed
	for len(all) < 3 {
		all = append(all, w.claim(ClaimOptions{Max: 2, Wait: time.Minute})...)
	}
	if got := w.claim(ClaimOptions{Max: 5, Wait: 10 * time.Millisecond}); len(got) != 0 {
		t.Errorf("claimed what others work on: %v", got)
	}
	w.truth.put(all[0].Name, "blue") // while it is worked on
	w.all()
	m, ctx := w.manager, t.Context()
	results, err := m.Ack(ctx, "h", "me", []string{all[0].Token, "wrong"})
	if err != nil || results[0] != nil || !errors.Is(results[1], ErrToken) {
		t.Fatal(results, err)
	}
	if got := w.claim(ClaimOptions{Max: 5, Wait: time.Minute}); len(got) != 1 || got[0].Name != all[0].Name || got[0].Transition != Changes {
		t.Errorf("after a change: %+v", got)
	}
	for what, token := range map[string]string{"used": all[0].Token, "another's": all[1].Token} {
		owner := "me"
		if what == "another's" {
			owner = "you"
		}
		results, err := m.Ack(ctx, "h", owner, []string{token})
		if err != nil || !errors.Is(results[0], ErrToken) {
			t.Errorf("a token that is %s: %v, %v", what, results, err)
		}
	}
	after := 50 * time.Millisecond
	began := time.Now()
	if results, err := m.Nack(ctx, "h", "me", []string{all[1].Token}, &after, "not now"); err != nil || results[0] != nil {
		t.Fatal(results, err)
	}
	got := w.claim(ClaimOptions{Max: 5, Wait: time.Minute})
	if len(got) != 1 || got[0].Name != all[1].Name || got[0].Attempt != 2 || time.Since(began) < after {
		t.Errorf("given back after %v: %+v", time.Since(began), got)
	}
	if st, _ := m.Handler("h"); st.InFlight != 3 || st.LastError != "not now" {
		t.Errorf("status %+v", st)
	}
}

// TestLeases: the claim of a worker that died comes free when its lease runs out, unless it
// was extended; a key whose workers die each time is given up.
func TestLeases(t *testing.T) {
	w := newWorld(t)
	h := claimHandler()
	w.start(h)
	w.truth.put("a", "red")
	w.all()
	first := w.claim(ClaimOptions{Max: 1, Lease: 30 * time.Millisecond, Wait: time.Minute})[0]
	if results, err := w.manager.Extend(t.Context(), "h", "me", []string{first.Token}, 300*time.Millisecond); err == nil && results[0] == nil {
		if got := w.claim(ClaimOptions{Max: 1, Wait: 100 * time.Millisecond}); len(got) != 0 && time.Now().Before(first.Expires.Add(100*time.Millisecond)) {
			t.Errorf("claimed in spite of a longer lease: %+v", got)
		}
	}
	for n := 2; n <= h.Retry.Attempts; n++ {
		got := w.claim(ClaimOptions{Max: 1, Lease: 20 * time.Millisecond, Wait: time.Minute})
		if len(got) != 1 || got[0].Attempt != n {
			t.Fatalf("attempt %d: %+v", n, got)
		}
	}
	until(t, "given up", func() bool { st, _ := w.manager.Handler("h"); return st.Dead == 1 })
	if results, err := w.manager.Ack(t.Context(), "h", "me", []string{first.Token}); err != nil || !errors.Is(results[0], ErrToken) {
		t.Errorf("a lease that ran out: %v, %v", results, err)
	}
}

// TestClaimErrors are those of claims that cannot be.
func TestClaimErrors(t *testing.T) {
	w := newWorld(t)
	h := claimHandler()
	pushed := handler(&sink{})
	pushed.Name = "pushed"
	w.start(h, pushed)
	ctx := t.Context()
	o := ClaimOptions{Owner: "me", Max: 1, Lease: time.Second}
	if _, err := w.manager.Claim(ctx, "other", o); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, err := w.manager.Claim(ctx, "pushed", o); !errors.Is(err, ErrHasSink) {
		t.Error(err)
	}
	long := o
	long.Lease = time.Hour
	if _, err := w.manager.Claim(ctx, "h", long); !errors.Is(err, ErrLease) {
		t.Error(err)
	}
	if err := w.manager.Pause(ctx, "h"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.manager.Claim(ctx, "h", o); !errors.Is(err, ErrPaused) {
		t.Error(err)
	}
}

// TestClaimCancelled: who goes away while a claim is made has claimed nothing.
func TestClaimCancelled(t *testing.T) {
	w := newWorld(t)
	w.start(claimHandler())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.truth.put("a", "red")
	w.all()
	until(t, "pending", func() bool { st, _ := w.manager.Handler("h"); return st.Pending == 1 })
	if got, err := w.manager.Claim(ctx, "h", ClaimOptions{Owner: "me", Max: 1, Lease: time.Minute, Wait: time.Minute}); err == nil {
		t.Errorf("claimed %v", got)
	}
	if got := w.claim(ClaimOptions{Max: 1, Wait: time.Minute}); len(got) != 1 || got[0].Attempt != 1 {
		t.Errorf("claimed %+v", got)
	}
}

// TestAckedIsNotClaimedAgain: what was acknowledged is not to be had after a crash; what was
// claimed and not acknowledged is.
func TestAckedIsNotClaimedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(claimHandler())
	w.truth.put("acked", "red")
	w.truth.put("claimed", "red")
	w.all()
	if err := w.save(true); err != nil {
		t.Fatal(err)
	}
	var all []Claimed
	for len(all) < 2 {
		all = append(all, w.claim(ClaimOptions{Max: 2, Wait: time.Minute})...)
	}
	i := slices.IndexFunc(all, func(c Claimed) bool { return c.Name == "acked" })
	if results, err := w.manager.Ack(t.Context(), "h", "me", []string{all[i].Token}); err != nil || results[0] != nil {
		t.Fatal(results, err)
	}
	w.crash()
	w.restore()
	w.start(claimHandler())
	w.all()
	got := w.claim(ClaimOptions{Max: 5, Wait: time.Minute})
	if len(got) != 1 || got[0].Name != "claimed" || got[0].Transition != Enters {
		t.Errorf("claimed %+v", got)
	}
	if got := w.claim(ClaimOptions{Max: 5, Wait: 20 * time.Millisecond}); len(got) != 0 {
		t.Errorf("claimed %+v", got)
	}
}

// TestClaimOfRemoved: who waits for keys of a handler that is taken out is told so at once.
func TestClaimOfRemoved(t *testing.T) {
	w := newWorld(t)
	w.start(claimHandler())
	told := make(chan error, 1)
	go func() {
		_, err := w.manager.Claim(context.Background(), "h", ClaimOptions{Owner: "me", Max: 1, Wait: 2 * time.Minute})
		told <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if err := w.manager.Apply(nil); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-told:
		if !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits on")
	}
}

// TestClaimsAreNotHeldInMemory: of large objects an answer has fewer, and none of them is held
// until they are acknowledged.
func TestClaimsAreNotHeldInMemory(t *testing.T) {
	w := newWorld(t)
	w.start(claimHandler())
	for i := range 20 {
		w.truth.put(fmt.Sprint("o", i), strings.Repeat("x", 1<<20))
	}
	w.all()
	until(t, "pending", func() bool { st, _ := w.manager.Handler("h"); return st.Pending == 20 })
	time.Sleep(20 * time.Millisecond)
	claimed := 0
	for claimed < 20 {
		all := w.claim(ClaimOptions{Max: 1000, Wait: time.Minute})
		if len(all) > 8 || len(all) == 0 {
			t.Fatalf("%d objects of 2 MB in one answer", len(all))
		}
		claimed += len(all)
	}
	h, err := w.manager.find("h")
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.claims {
		if len(c.job.delivery.Object) > 0 {
			t.Fatal("a claim holds its object")
		}
	}
}

// TestDefaultLease: a claim that asks for none gets one that the handler allows.
func TestDefaultLease(t *testing.T) {
	w := newWorld(t)
	h := claimHandler()
	h.MaxLease = 5 * time.Second
	w.start(h)
	w.truth.put("a", "red")
	w.all()
	all, err := w.manager.Claim(t.Context(), "h", ClaimOptions{Owner: "me", Max: 1, Wait: time.Minute})
	if err != nil || len(all) != 1 || time.Until(all[0].Expires) > h.MaxLease {
		t.Errorf("claimed %+v, error %v", all, err)
	}
}
