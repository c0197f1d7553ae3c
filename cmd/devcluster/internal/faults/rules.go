package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rules are what a Proxy does wrong. Per request the first that matches counts.
type Rules struct {
	Seed  uint64 `json:"seed,omitempty"`
	Rules []Rule `json:"rules"`
}

// Rule is one fault and the requests that suffer it.
type Rule struct {
	Name  string `json:"name,omitempty"`
	Match Match  `json:"match"`
	Do    Do     `json:"do"`
}

// Match chooses requests. What is absent excludes none.
type Match struct {
	Verb  string  `json:"verb,omitempty"`  // list, watch, get or other
	Path  string  `json:"path,omitempty"`  // regular expression
	Query string  `json:"query,omitempty"` // regular expression
	Share float64 `json:"share,omitempty"` // of the requests that match
	Times int     `json:"times,omitempty"` // how many requests at most
}

// Do is a fault: exactly one field is set.
type Do struct {
	Error    *Error    `json:"error,omitempty"`
	Cut      *End      `json:"cut,omitempty"`
	Reset    *End      `json:"reset,omitempty"`
	Withhold *Withhold `json:"withhold,omitempty"`
	Delay    *Delay    `json:"delay,omitempty"`
	Garble   *Garble   `json:"garble,omitempty"`
	Drop     *Drop     `json:"drop,omitempty"`
	Bookmark *Bookmark `json:"bookmark,omitempty"`
	Empty    *struct{} `json:"empty,omitempty"`
	Truncate *struct{} `json:"truncate,omitempty"`
}

// Error answers with a Status, or begins a watch with it as an event.
type Error struct {
	Code       int32                `json:"code,omitempty"` // default 500
	Reason     metav1.StatusReason  `json:"reason,omitempty"`
	Message    string               `json:"message,omitempty"`
	RetryAfter int32                `json:"retryAfter,omitempty"` // seconds
	Causes     []metav1.StatusCause `json:"causes,omitempty"`
	Event      bool                 `json:"event,omitempty"`
}

// End ends a response early.
type End struct {
	AfterBytes  int  `json:"afterBytes,omitempty"`
	AfterEvents int  `json:"afterEvents,omitempty"`
	Clean       bool `json:"clean,omitempty"` // as if it were complete; of cut only
}

// Withhold keeps a response back.
type Withhold struct {
	Seconds     float64 `json:"seconds,omitempty"` // 0: until the rules change
	AfterEvents int     `json:"afterEvents,omitempty"`
}

// Delay makes a response, or each event of a watch, late.
type Delay struct {
	Milliseconds int    `json:"milliseconds"`
	Before       string `json:"before,omitempty"` // response or event
}

// Garble changes one byte of an event, or of a body that is no stream.
type Garble struct {
	Event  int   `json:"event,omitempty"`  // default 1
	Offset *int  `json:"offset,omitempty"` // default by chance
	Mask   uint8 `json:"mask,omitempty"`   // default one bit, by chance
}

// Drop leaves out events.
type Drop struct {
	Event int `json:"event,omitempty"` // the first; default 1
	Count int `json:"count,omitempty"` // default 1
}

// Bookmark makes bookmarks wrong.
type Bookmark struct {
	Add  int64 `json:"add,omitempty"`
	Once bool  `json:"once,omitempty"` // the watch is one bookmark, and ends
}

// ParseRules reads rules strictly.
func ParseRules(data []byte) (*Rules, error) {
	var rules Rules
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&rules); err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("read rules: there is more after them")
	}
	return &rules, nil
}

// rule is a Rule in force.
type rule struct {
	Rule
	path, query *regexp.Regexp
	applied     int
}

// ruleSet are the rules in force. Proxy.mu guards it.
type ruleSet struct {
	rules []*rule
	rand  *rand.Rand
}

func compile(rules *Rules) (*ruleSet, error) {
	set := &ruleSet{rand: rand.New(rand.NewPCG(rules.Seed, 0))}
	for i, from := range rules.Rules {
		r := &rule{Rule: from}
		err := from.check()
		if err == nil {
			r.path, err = regexp.Compile(from.Match.Path)
		}
		if err == nil {
			r.query, err = regexp.Compile(from.Match.Query)
		}
		if err != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		set.rules = append(set.rules, r)
	}
	return set, nil
}

func (r *Rule) check() error {
	switch r.Match.Verb {
	case "", list, watch, get, other:
	default:
		return fmt.Errorf("unknown verb %q; there are: list, watch, get, other", r.Match.Verb)
	}
	if r.Match.Share < 0 || r.Match.Share > 1 {
		return fmt.Errorf("share %v is not between 0 and 1", r.Match.Share)
	}
	do, faults := reflect.ValueOf(r.Do), 0
	for i := range do.NumField() {
		if !do.Field(i).IsNil() {
			faults++
		}
	}
	if faults != 1 {
		return fmt.Errorf("do has %d faults, want one", faults)
	}
	if b := r.Do.Bookmark; b != nil && (b.Add == 0) != b.Once {
		return errors.New("bookmark is either add or once")
	}
	if d := r.Do.Delay; d != nil && d.Milliseconds <= 0 {
		return errors.New("delay needs milliseconds")
	}
	if d := r.Do.Delay; d != nil && d.Before != "" && d.Before != "response" && d.Before != "event" {
		return fmt.Errorf("delay before %q; there are: response, event", d.Before)
	}
	return nil
}

// reaches says whether the fault can befall a request, which may be a watch that
// is open already.
func (d *Do) reaches(verb string, open bool) bool {
	switch {
	case d.Error != nil, d.Empty != nil:
		return !open
	case d.Truncate != nil:
		return verb != watch
	case d.Drop != nil:
		return verb == watch
	case d.Bookmark != nil:
		return verb == watch && !(open && d.Bookmark.Once)
	}
	return true
}

// fault is a rule applied to one request.
type fault struct {
	Do
	seed uint64 // of what is left to chance
}

// choose applies the first rule that matches, if any.
func (s *ruleSet) choose(r request, open bool) *fault {
	for _, rule := range s.rules {
		m := rule.Match
		switch {
		case m.Verb != "" && m.Verb != r.verb, m.Times > 0 && rule.applied >= m.Times,
			!rule.path.MatchString(r.path), !rule.query.MatchString(r.query),
			!rule.Do.reaches(r.verb, open):
			continue
		case m.Share > 0 && s.rand.Float64() >= m.Share:
			continue
		}
		rule.applied++
		return &fault{rule.Do, s.rand.Uint64()}
	}
	return nil
}
