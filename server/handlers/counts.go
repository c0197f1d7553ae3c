package handlers

import (
	"time"

	"github.com/informerd/informerd/cache"
)

// counts are what a handler counts since the start. Guarded by the lock of the handler.
type counts struct {
	delivers, fails, filterErrors uint64
	filterError, err              string
	errAt, deliveredAt            time.Time
	seconds                       [60]uint32 // deliveries in each of the last 60 seconds
	second                        int64      // the last of them

	observed *observed
}

func (c *counts) taken(waited time.Duration) { c.observed.waits.Observe(waited.Seconds()) }
func (c *counts) worked(took time.Duration)  { c.observed.works.Observe(took.Seconds()) }

func (c *counts) delivered(now time.Time) {
	c.delivers++
	c.deliveredAt = now
	c.roll(now)
	c.seconds[now.Unix()%60]++
}

func (c *counts) fail(now time.Time, err error) {
	c.fails++
	c.err, c.errAt = err.Error(), now
	c.observed.retry.Inc()
}

// roll forgets seconds that have passed.
func (c *counts) roll(now time.Time) {
	second := now.Unix()
	for s := max(c.second+1, second-59); s <= second; s++ {
		c.seconds[s%60] = 0
	}
	c.second = max(c.second, second)
}

func (c *counts) perSecond(now time.Time) float64 {
	c.roll(now)
	sum := uint32(0)
	for _, n := range c.seconds {
		sum += n
	}
	return float64(sum) / 60
}

// fault counts an object that the filter has no value for.
func (h *running) fault(l *line, k cache.Key, err *cache.EvalError) {
	h.faults(l, cache.Faults{Count: 1, First: err.Message, Key: k})
}

func (h *running) faults(l *line, f cache.Faults) {
	if f.Count == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.filterErrors += uint64(f.Count)
	name := f.Key.Name
	if f.Key.Namespace != "" {
		name = f.Key.Namespace + "/" + name
	}
	h.counts.filterError = l.key.GroupResource.String() + " " + name + ": " + f.First
}
