package sinkconf

import (
	"errors"
	"fmt"
	"time"
)

// Mistake is one thing that is wrong with a configuration.
type Mistake struct {
	// Field is its name in config.yaml, such as secretFiles[0].
	Field string
	// Problem says what is wrong and what would be right, without secrets.
	Problem string
}

func (m *Mistake) Error() string { return m.Field + ": " + m.Problem }

// Mistakes collects them.
type Mistakes []error

// Add notes one.
func (m *Mistakes) Add(field, format string, args ...any) {
	*m = append(*m, &Mistake{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// Note adds err, if there is one.
func (m *Mistakes) Note(field string, err error) {
	if err != nil {
		m.Add(field, "%v", err)
	}
}

// Both notes that of two fields that are given together one is missing.
func (m *Mistakes) Both(one, value, other, otherValue string) {
	switch {
	case value != "" && otherValue == "":
		m.Add(other, "is missing, and %s is given: give both", one)
	case value == "" && otherValue != "":
		m.Add(one, "is missing, and %s is given: give both", other)
	}
}

// Err is all of them, nil if there are none.
func (m Mistakes) Err() error { return errors.Join(m...) }

const (
	// DefaultTimeout is how long a sink may take for one delivery.
	DefaultTimeout = 10 * time.Second
	maxTimeout     = 5 * time.Minute
)

// ConnectTimeout is how long to try one of so many addresses in a delivery that may take
// timeout: less than its part, so that others are tried, too, and it is known then why there
// is no connection.
func ConnectTimeout(timeout time.Duration, addresses int) time.Duration {
	return timeout * 3 / 4 / time.Duration(min(max(addresses, 1), 4))
}

// Timeout is d, or the default where it is 0.
func (m *Mistakes) Timeout(d time.Duration) time.Duration {
	if d == 0 {
		return DefaultTimeout
	}
	if d < 0 || d > maxTimeout {
		m.Add("timeout", "%s is out of range: more than 0 and at most %s", d, maxTimeout)
	}
	return d
}
