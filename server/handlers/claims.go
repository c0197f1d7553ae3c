package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// claim is a key that somebody works on.
type claim struct {
	job     *job
	owner   string
	began   time.Time
	expires time.Time
	timer   *time.Timer
	saving  bool // it was acknowledged, which is being saved
}

// Claim implements Surface.
func (m *Manager) Claim(ctx context.Context, name string, o ClaimOptions) ([]Claimed, error) {
	h, err := m.find(name)
	if err != nil {
		return nil, err
	}
	spec := h.asked()
	if spec.Sink != nil {
		return nil, ErrHasSink
	}
	if o.Lease, err = spec.lease(o.Lease); err != nil {
		return nil, err
	}
	all := h.claimAll(ctx, o)
	if err = ctx.Err(); h.removed.Err() != nil && !h.isUnread() {
		err = ErrUnknown
	}
	if err == nil && len(all) > 0 {
		err = h.durable(ctx) // that they may be worked on
	}
	if err != nil {
		h.giveBack(all)
		return nil, err
	}
	if len(all) == 0 && h.isPaused() {
		return nil, ErrPaused
	}
	return all, nil
}

const (
	defaultLease = 30 * time.Second
	// maxClaimBytes is how much of objects one claim holds, but for one object that is larger.
	maxClaimBytes = 8 << 20
)

// lease is how long a claim holds that asks for so long.
func (s *Handler) lease(asked time.Duration) (time.Duration, error) {
	if asked > s.MaxLease {
		return 0, fmt.Errorf("%w: at most %s", ErrLease, s.MaxLease)
	}
	if asked == 0 {
		asked = min(defaultLease, s.MaxLease)
	}
	return asked, nil
}

// claimAll claims what there is, and waits for the first.
func (h *running) claimAll(ctx context.Context, o ClaimOptions) (all []Claimed) {
	ctx, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	defer context.AfterFunc(h.removed, cancel)()
	for size := 0; len(all) < max(1, o.Max) && size < maxClaimBytes && h.removed.Err() == nil; {
		j := h.claimable(ctx, len(all) == 0)
		if j == nil {
			break
		}
		all = append(all, h.claim(j, o))
		size += len(all[len(all)-1].Object)
	}
	return all
}

// claimable is the next key there is; with block it waits for one.
func (h *running) claimable(ctx context.Context, block bool) *job {
	for {
		e, _ := h.pick(time.Now())
		if e == nil {
			if !block || ctx.Err() != nil {
				return nil
			}
			h.await(ctx, 0)
			continue
		}
		if j := h.prepare(context.WithoutCancel(ctx), e); j != nil {
			return j
		}
	}
}

func (h *running) isPaused() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.meta.Paused
}

func (h *running) claim(j *job, o ClaimOptions) Claimed {
	now := time.Now()
	token := rand.Text()
	c := &claim{job: j, owner: o.Owner, began: now, expires: now.Add(o.Lease)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.claims[token] = c
	c.timer = time.AfterFunc(o.Lease, func() { h.expire(token, c) })
	claimed := Claimed{Delivery: j.delivery, Token: token, Expires: c.expires.UTC()}
	j.delivery.Object = nil // a claim may be held for long, and there may be many
	return claimed
}

// giveBack undoes claims that nobody was told of.
func (h *running) giveBack(all []Claimed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range all {
		if held := h.claims[c.Token]; held != nil {
			h.endClaimLocked(c.Token, held)
			h.undoneLocked(held.job, 0)
			h.offerLocked(held.job.entry)
		}
	}
}

func (h *running) endClaimLocked(token string, c *claim) {
	c.timer.Stop()
	delete(h.claims, token)
}

// expire ends a claim whose lease has run out: who had it may be dead. It counts as a
// failure, so that what kills its workers is given up.
func (h *running) expire(token string, c *claim) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.claims[token] != c || c.saving {
		return
	}
	if left := time.Until(c.expires); left > 0 { // extended
		c.timer.Reset(left)
		return
	}
	h.endClaimLocked(token, c)
	h.nackLocked(c, nil, "the lease ran out before the claim was acknowledged")
}

// heldLocked is the claim of a token that is owner's.
func (h *running) heldLocked(owner, token string) (*claim, error) {
	c := h.claims[token]
	if c == nil || c.owner != owner || c.saving || !time.Now().Before(c.expires) {
		return nil, ErrToken
	}
	return c, nil
}

// Ack implements Surface.
func (m *Manager) Ack(ctx context.Context, name, owner string, tokens []string) ([]error, error) {
	h, err := m.find(name)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(tokens))
	acked := map[string]*claim{}
	h.mu.Lock()
	for i, token := range tokens {
		c, err := h.heldLocked(owner, token)
		if results[i] = err; err != nil {
			continue
		}
		c.saving = true
		acked[token] = c
		h.counts.worked(time.Since(c.began))
		h.deliveredLocked(c.job)
	}
	h.mu.Unlock()
	if len(acked) > 0 {
		err = h.durable(ctx)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for token, c := range acked {
		h.endClaimLocked(token, c)
		h.backLocked(c.job.entry, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("what was acknowledged is not saved yet: a restart may deliver it again: %w", err)
	}
	return results, nil
}

// Nack implements Surface.
func (m *Manager) Nack(_ context.Context, name, owner string, tokens []string, after *time.Duration, reason string) ([]error, error) {
	return m.eachClaim(name, owner, tokens, func(h *running, token string, c *claim) {
		h.endClaimLocked(token, c)
		h.nackLocked(c, after, reason)
	})
}

func (h *running) nackLocked(c *claim, after *time.Duration, reason string) {
	now, e := time.Now(), c.job.entry
	if reason == "" {
		reason = "given back without a reason"
	}
	h.counts.worked(now.Sub(c.began))
	h.counts.fail(now, errors.New(reason))
	h.retryLocked(e, reason, false)
	if after != nil && !e.is(dead) {
		e.more.before = now.Add(*after)
	}
	wait := h.waitLocked(e)
	h.undoneLocked(c.job, wait)
	if wait <= 0 {
		h.offerLocked(e)
	}
}

// Extend implements Surface.
func (m *Manager) Extend(_ context.Context, name, owner string, tokens []string, lease time.Duration) ([]error, error) {
	h, err := m.find(name)
	if err != nil {
		return nil, err
	}
	if lease, err = h.asked().lease(lease); err != nil {
		return nil, err
	}
	return m.eachClaim(name, owner, tokens, func(_ *running, _ string, c *claim) {
		c.expires = time.Now().Add(lease)
		c.timer.Reset(lease)
	})
}

func (m *Manager) eachClaim(name, owner string, tokens []string, do func(*running, string, *claim)) ([]error, error) {
	h, err := m.find(name)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	results := make([]error, len(tokens))
	for i, token := range tokens {
		c, err := h.heldLocked(owner, token)
		if results[i] = err; err == nil {
			do(h, token, c)
		}
	}
	return results, nil
}
