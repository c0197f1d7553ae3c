package health

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache/rawjson"
)

// soundPod is the verdict on a pod that nothing is wrong with, as nearly all are, without a look
// at its metadata and its spec, which are two thirds of it. Where it is not ok, the rule has to
// judge.
//
// The status of a pod is its last member. In a valid document `,"status":{` is a key and no part
// of a text, in which the quote would be escaped; and what has nothing but one brace after it is a
// member of the document itself.
func soundPod(json []byte, o *object) (h Health, ok bool) {
	at := statusAt(json)
	if at < 0 || beingDeleted(json[:at]) {
		return Health{}, false
	}
	status := json[at:]
	length := o.said.parse(status)
	if length == 0 || string(status[length:]) != "}" || len(o.said.observed) > 0 && !observed(json, o.said.observed) {
		return Health{}, false
	}
	p := parsePodStatus(o)
	if !is(p.phase, "Running") || !p.ready.isTrue() {
		return Health{}, false
	}
	if _, wrong := firstTrouble(&p, containerTrouble); wrong {
		return Health{}, false
	}
	if _, wrong := unstable(o, &p); wrong {
		return Health{}, false
	}
	return Health{Since: p.ready.since()}, true
}

// SoundOf is a function that says of objects of a kind whether they are Good at any time as long
// as they are not changed, of nearly all that are; nil for a kind whose objects it takes more to
// judge. It is for cache.StoreOptions.
func SoundOf(kind schema.GroupKind) func(json []byte) bool {
	if !JudgeOf(kind).pod {
		return nil
	}
	return func(json []byte) bool {
		in := rooms.Get().(*room)
		defer func() {
			in.parsed.said.forget() // the JSON is not ours to keep
			in.parsed.empty(time.Time{})
			rooms.Put(in)
		}()
		// Before all time, every failure of a container has been a short while ago.
		in.parsed.empty(time.Time{})
		_, ok := soundPod(json, &in.parsed)
		return ok
	}
}

// observed reports whether the generation of an object is the one that its status is about. API
// servers write it near the beginning.
func observed(json []byte, status value) (same bool) {
	of := rawjson.NewLazy(json).First("metadata", "generation")
	return len(of) > 0 && bytes.Equal(of.Raw(), status.Raw())
}

// statusAt is where the last object begins that is called status, -1 if there is none.
func statusAt(json []byte) int {
	for at := lastBrace(json); at >= 0; at = lastBrace(json[:at]) {
		if bytes.HasSuffix(json[:at], []byte(`,"status":`)) {
			return at
		}
	}
	return -1
}

// lastBrace is bytes.LastIndexByte of an opening brace, in words of eight bytes.
func lastBrace(json []byte) int {
	const ones, lows = 0x0101010101010101, 0x7f7f7f7f7f7f7f7f
	for len(json) >= 8 {
		w := binary.LittleEndian.Uint64(json[len(json)-8:]) ^ ones*'{'
		if found := ^(w&lows + lows | w | lows); found != 0 { // the high bits of the bytes that were braces
			return len(json) - 1 - bits.LeadingZeros64(found)>>3
		}
		json = json[:len(json)-8]
	}
	return bytes.LastIndexByte(json, '{')
}

// beingDeleted reports whether deletionTimestamp occurs. It looks for its one letter that is
// rare.
func beingDeleted(json []byte) bool {
	const before, after = `"deletion`, `Timestamp"`
	for at := 0; ; at++ {
		next := bytes.IndexByte(json[at:], after[0])
		if next < 0 {
			return false
		}
		if at += next; bytes.HasSuffix(json[:at], []byte(before)) && bytes.HasPrefix(json[at:], []byte(after)) {
			return true
		}
	}
}
