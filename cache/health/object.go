package health

import (
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/cache/rawjson"
)

// value is a part of an object; nil where there is none.
type value = rawjson.Lazy

// object is one being judged: where its parts begin.
type object struct {
	now              time.Time
	apiVersion, kind value
	spec, status     value
	webhooks         value // of what configures them
	typ, data        value // of Secrets
	created          value
	deleted          value // when it is to be gone, for pods with their grace period
	generation       value
	finalizers       value
	annotations      value
	owners           value
	said             said // what the status says, once it was read
}

func parse(json []byte, now time.Time) *object {
	o := new(object)
	o.parse(json, now)
	return o
}

// parse finds the parts of an object in one pass, which ends where the last of them
// begins: mostly that is the status.
func (o *object) parse(json []byte, now time.Time) {
	o.empty(now)
	seen := false // the metadata
	data := rawjson.NewLazy(json)
	if len(data) == 0 || data.Kind() != rawjson.Object {
		return
	}
	for parts := data.Parts(); o.apiVersion == nil || o.kind == nil || !seen || o.spec == nil || o.status == nil; {
		key, _, v, ok := parts.Next()
		if !ok {
			break
		}
		switch string(key) {
		case "apiVersion":
			o.apiVersion = v
		case "kind":
			o.kind = v
		case "metadata":
			seen = true
			parts.Passed(o.parseMetadata(v))
		case "spec":
			o.spec = v
		case "status":
			o.status = v
		case "webhooks":
			o.webhooks = v
		case "type":
			o.typ = v
		case "data":
			o.data = v
		}
	}
}

// empty leaves nothing of o but its memory.
func (o *object) empty(now time.Time) { *o = object{now: now, said: o.said.emptied()} }

// parseMetadata returns how long it is.
func (o *object) parseMetadata(metadata value) int {
	return members(metadata, func(key []byte, v value) {
		switch string(key) {
		case "creationTimestamp":
			o.created = v
		case "deletionTimestamp":
			o.deleted = v
		case "generation":
			o.generation = v
		case "finalizers":
			o.finalizers = v
		case "annotations":
			o.annotations = v
		case "ownerReferences":
			o.owners = v
		}
	})
}

// members visits the members of an object, nothing of what is none, and returns how long
// it is, 0 if that is not known. The keys that rules ask for are never written with escapes.
func members(v value, visit func(key []byte, v value)) int {
	return passed(v, func(key []byte, v value) int {
		visit(key, v)
		return 0
	})
}

// passed is members for who goes through some of them, and so knows how long these are.
func passed(v value, visit func(key []byte, v value) (length int)) int {
	if len(v) == 0 || v.Kind() != rawjson.Object {
		return 0
	}
	for parts := v.Parts(); ; {
		key, _, member, ok := parts.Next()
		if !ok {
			return parts.End()
		}
		parts.Passed(visit(key, member))
	}
}

// elements visits those of an array, until visit returns false.
func elements(v value, visit func(v value) bool) {
	walked(v, func(v value) (int, bool) { return 0, visit(v) })
}

// walked is elements for who goes through all of each and so knows how long it is. It
// returns how long the array is, 0 if that is not known.
func walked(v value, visit func(v value) (length int, more bool)) int {
	if len(v) == 0 || v.Kind() != rawjson.Array {
		return 0
	}
	for parts := v.Parts(); ; {
		_, _, element, ok := parts.Next()
		if !ok {
			return parts.End()
		}
		length, more := visit(element)
		if !more {
			return 0
		}
		parts.Passed(length)
	}
}

// is reports whether v is the string s, which has no escapes.
func is(v value, s string) bool {
	return len(v) > len(s)+1 && v[0] == '"' && v[len(s)+1] == '"' && string(v[1:len(s)+1]) == s
}

// text is that of a string, "" of anything else.
func text(v value) string {
	if len(v) == 0 || v.Kind() != rawjson.String {
		return ""
	}
	return v.Text()
}

// number is that of a whole number.
func number(v value) (n int64, ok bool) {
	if len(v) == 0 || v.Kind() != rawjson.Number {
		return 0, false
	}
	n, _, ok = v.Number()
	return n, ok
}

// count is a number, or what counts where there is none.
func count(v value, absent int64) int64 {
	if n, ok := number(v); ok {
		return n
	}
	return absent
}

// several is a number of things in words: 1 restart, 2 restarts.
func several(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.FormatInt(n, 10) + " " + thing + "s"
}

func isTrue(v value) bool { return len(v) > 0 && v[0] == 't' }

// when is a time as Kubernetes writes it, zero of anything else.
func when(v value) time.Time {
	s := text(v)
	if s == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC()
	}
	return time.Time{}
}

// some reports whether an array or object has anything in it.
func some(v value) bool {
	if len(v) == 0 || v.Kind() != rawjson.Array && v.Kind() != rawjson.Object {
		return false
	}
	parts := v.Parts()
	_, _, _, ok := parts.Next()
	return ok
}

// words are the strings of an array, at most three of them.
func words(v value) string {
	var all []string
	more := 0
	elements(v, func(v value) bool {
		if len(all) == 3 {
			more++
		} else {
			all = append(all, text(v))
		}
		return true
	})
	s := strings.Join(all, ", ")
	if more > 0 {
		s += " and " + strconv.Itoa(more) + " more"
	}
	return s
}
