package health

import (
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is what state an object is in. A larger one wants a person more.
type Status uint8

// The statuses.
const (
	Good        Status = iota // as it should be, or there is nothing to be wrong
	Unknown                   // nobody who would know has said it lately
	Progressing               // on its way, and not there yet
	Bad                       // wrong, and waiting will not mend it
	statuses
)

var statusNames = [statuses]string{"good", "unknown", "progressing", "bad"}

func (s Status) String() string { return statusNames[s] }

// Statuses are all there are, the worst first.
var Statuses = []Status{Bad, Progressing, Unknown, Good}

// ParseStatus is the Status of a name.
func ParseStatus(name string) (Status, bool) {
	for s, n := range statusNames {
		if n == name {
			return Status(s), true
		}
	}
	return Good, false
}

// Health is the verdict on one object.
type Health struct {
	Status Status
	// Reason is a word as Kubernetes writes them: ImagePullBackOff. It may be empty of
	// what is Good.
	Reason string
	// Message is a sentence for people, of maxMessage bytes at most.
	Message string
	// Since is when it came to this; zero where the object does not tell.
	Since time.Time
	// Until is when the same object will be judged in another way; zero: never.
	Until time.Time
}

// Bounds of texts. Some controllers put whole logs into their messages.
const (
	maxMessage = 300
	maxReason  = 64
)

// Judge is the rule of one kind. It is immutable.
type Judge struct {
	rule  rule
	plain bool // there is nothing to go wrong but its deletion
	calls bool // it is no better than the Services it calls
	pod   bool // it is that of pods, which soundPod knows
}

// rule judges an object that is not being deleted and whose controller has seen it.
type rule func(o *object) Health

// JudgeOf is the Judge of a kind. There is one for every kind.
func JudgeOf(kind schema.GroupKind) Judge {
	if r, ok := rules[kind]; ok {
		return Judge{rule: r, pod: kind == schema.GroupKind{Kind: "Pod"}}
	}
	return Judge{rule: custom, plain: plain[kind], calls: calling[kind]}
}

// Judge is the verdict on an object at a time. json must be valid, as all that a Store
// holds is.
func (j Judge) Judge(json []byte, now time.Time) Health {
	return j.verdict(parse(json, now))
}

// Of is Judge for an object that says itself of which kind it is.
func Of(json []byte, now time.Time) Health {
	o := parse(json, now)
	group, _, found := strings.Cut(text(o.apiVersion), "/")
	if !found {
		group = ""
	}
	return JudgeOf(schema.GroupKind{Group: group, Kind: text(o.kind)}).verdict(o)
}

func (j Judge) verdict(o *object) Health {
	h, decided := o.terminating()
	if !decided && !j.plain {
		if h, decided = o.unobserved(); !decided {
			h = j.rule(o)
		}
	}
	h.Reason, h.Message = bounded(h.Reason, maxReason), bounded(h.Message, maxMessage)
	return h
}

// bounded cuts a text between two characters, and makes one line of it.
func bounded(s string, most int) string {
	if strings.ContainsAny(s, "\r\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= most {
		return s
	}
	end := most - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
