package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Stage is when an Event was made.
type Stage string

const (
	// Started: a stream begins. What goes on for long is known of before it ends.
	Started Stage = "ResponseStarted"
	// Complete: the request has ended.
	Complete Stage = "ResponseComplete"
)

// Event is one line. Fields that are called as in an Event of audit.k8s.io/v1 mean the
// same; those after StageTimestamp are not in that.
type Event struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Level      string `json:"level"`

	AuditID          string   `json:"auditID"`
	Stage            Stage    `json:"stage"`
	RequestURI       string   `json:"requestURI"`
	Verb             string   `json:"verb"`
	User             *User    `json:"user,omitempty"`
	ImpersonatedUser *User    `json:"impersonatedUser,omitempty"`
	SourceIPs        []string `json:"sourceIPs,omitempty"`
	UserAgent        string   `json:"userAgent,omitempty"`
	ObjectRef        *Object  `json:"objectRef,omitempty"`
	ResponseStatus   Status   `json:"responseStatus"`
	Received         moment   `json:"requestReceivedTimestamp"`
	StageTimestamp   moment   `json:"stageTimestamp"`

	Method string `json:"method"`
	// Cluster is the one that is asked about, if it is one.
	Cluster string `json:"cluster,omitempty"`
	// Resources are those of a question about many, with their cluster if they are of
	// several; "*" stands for all that may be seen.
	Resources []string `json:"resources,omitempty"`
	// Objects is how many objects, or other items, were in the answer, or told of by the
	// stream; nil where it has none.
	Objects *int64 `json:"objects,omitempty"`
	// Bytes are those of the body, as they left.
	Bytes int64 `json:"bytes"`
	// Duration is since the request was received, in seconds.
	Duration float64 `json:"durationSeconds"`
	// Cut is that the answer had begun and was not completed.
	Cut bool `json:"cut,omitempty"`
}

// User is somebody who asks, or whom somebody asks to be.
type User struct {
	Username string   `json:"username,omitempty"`
	UID      string   `json:"uid,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

// Object is what a request is about: an object, or all objects of a resource.
type Object struct {
	Resource    string `json:"resource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	APIGroup    string `json:"apiGroup,omitempty"`
	APIVersion  string `json:"apiVersion,omitempty"`
	Subresource string `json:"subresource,omitempty"`
}

// Status is what a request was answered with.
type Status struct {
	Code int `json:"code"`
}

// moment is written with microseconds, as metav1.MicroTime is.
type moment time.Time

func (m moment) MarshalText() ([]byte, error) {
	return time.Time(m).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000000Z07:00"), nil
}

const (
	maxText   = 1 << 10 // of a name, an address or a user agent
	maxURI    = 8 << 10 // what is longer is refused
	maxGroups = 128
	maxKinds  = 512 // resources of one question

	truncated = "...TRUNCATED" // as the API server writes it
)

// bounded is a text of a client, which chooses how long it is.
func bounded(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + truncated
}

func boundedList(all []string, most int) []string {
	cut := len(all) > most
	all = slices.Clone(all[:min(len(all), most)])
	for i, text := range all {
		all[i] = bounded(text, maxText)
	}
	if cut {
		all = append(all, truncated)
	}
	return all
}

func (u User) bounded() *User {
	return &User{bounded(u.Username, maxText), bounded(u.UID, maxText), boundedList(u.Groups, maxGroups)}
}

func (o Object) bounded() *Object {
	for _, text := range []*string{&o.Resource, &o.Namespace, &o.Name, &o.APIGroup, &o.APIVersion, &o.Subresource} {
		*text = bounded(*text, maxText)
	}
	return &o
}

// appendLine appends an event as a line. Whoever looks at it in a terminal sees what is
// there: what is not printable is escaped.
func appendLine(dst []byte, e *Event) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic(err) // texts and numbers only
	}
	return appendPrintable(dst, out.Bytes())
}

// appendPrintable appends JSON with all in it escaped that a terminal may obey or hide,
// such as C1 controls and marks of direction. encoding/json escapes those of ASCII only,
// and leaves DEL. Not printable are none but those within texts, and the end of the line.
func appendPrintable(dst, line []byte) []byte {
	plain := bytes.IndexFunc(line, func(r rune) bool { return r >= 0x7f })
	if plain < 0 {
		return append(dst, line...)
	}
	dst, line = append(dst, line[:plain]...), line[plain:]
	for len(line) > 0 {
		r, size := utf8.DecodeRune(line)
		switch {
		case r == '\n', unicode.IsPrint(r):
			dst = append(dst, line[:size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		line = line[size:]
	}
	return dst
}
