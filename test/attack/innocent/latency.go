package innocent

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Times are how long answers took, by the question.
type Times map[string][]time.Duration

// Percentile is the least time that the share q of times do not exceed, 0 of none.
func Percentile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	rank := int(q * float64(len(sorted)))
	if float64(rank) < q*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Failure is an answer that nobody should have got.
type Failure struct {
	Question string
	At       time.Time
	Err      error
}

// maxFailures are kept; all are counted.
const maxFailures = 50

// book is what the answers of one phase were like.
type book struct {
	mu       sync.Mutex // guards all below
	times    Times
	read     map[string]int // how many of times were told by Since
	failures []Failure
	failed   map[string]int
}

func newBook() *book { return &book{times: Times{}, read: map[string]int{}, failed: map[string]int{}} }

func (b *book) answered(question string, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times[question] = append(b.times[question], took)
}

func (b *book) fail(question string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed[question]++
	if len(b.failures) < maxFailures {
		b.failures = append(b.failures, Failure{question, time.Now(), err})
	}
}

// since are the times that were not told before.
func (b *book) since() Times {
	b.mu.Lock()
	defer b.mu.Unlock()
	fresh := Times{}
	for question, all := range b.times {
		fresh[question] = slices.Clone(all[b.read[question]:])
		b.read[question] = len(all)
	}
	return fresh
}

// Phase is what the answers of some time were like.
type Phase struct {
	Times    Times
	Failures []Failure      // the first of them
	Failed   map[string]int // by question
}

func (b *book) phase() Phase {
	b.mu.Lock()
	defer b.mu.Unlock()
	times := Times{}
	for question, all := range b.times {
		times[question] = slices.Clone(all)
	}
	return Phase{times, slices.Clone(b.failures), maps.Clone(b.failed)}
}
