package cache

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
	apiserversharding "k8s.io/apiserver/pkg/sharding"
)

// Shard is a part of all objects by the hash of one of their fields, as KEP-5866 has it: readers
// that each ask for another one read every object once. It is immutable.
type Shard struct {
	selector string
	field    func(namespace, uid string) string
	ranges   []hashRange // in order
}

// hashRange is of 64-bit FNV-1a hashes, both ends included.
type hashRange struct{ first, last uint64 }

// shardFields are what objects are parted by.
var shardFields = map[string]func(namespace, uid string) string{
	"object.metadata.uid":       func(_, uid string) string { return uid },
	"object.metadata.namespace": func(namespace, _ string) string { return namespace },
}

// NewShard is the Shard of a selector, nil of one that is empty: all objects.
func NewShard(s sharding.Selector) (*Shard, error) {
	if s == nil || s.Empty() {
		return nil, nil
	}
	shard := &Shard{selector: s.String()}
	requirements := s.Requirements()
	for _, r := range requirements {
		if shard.field = shardFields[r.Key]; shard.field == nil || r.Key != requirements[0].Key {
			return nil, invalidf("shardSelector", "%q parts objects by fields that are not known, or by several", shard.selector)
		}
		hashes, err := parseHashRange(r)
		if err != nil {
			return nil, invalidf("shardSelector", "%v", err)
		}
		shard.ranges = append(shard.ranges, hashes)
	}
	shard.ranges = mergedRanges(shard.ranges)
	return shard, nil
}

// ParseShard reads a selector as KEP-5866 writes it; nil is all objects.
func ParseShard(selector string) (*Shard, error) {
	if selector == "" {
		return nil, nil
	}
	s, err := apiserversharding.Parse(selector)
	if err != nil {
		return nil, invalidf("shardSelector", "%v", err)
	}
	return NewShard(s)
}

// mergedRanges has each hash in one range at most, in order: a selector may be of a thousand of them.
func mergedRanges(ranges []hashRange) []hashRange {
	slices.SortFunc(ranges, func(a, b hashRange) int { return cmp.Compare(a.first, b.first) })
	out := ranges[:0]
	for _, r := range ranges {
		if n := len(out); n > 0 && r.first <= out[n-1].last {
			out[n-1].last = max(out[n-1].last, r.last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// parseHashRange reads a range whose end is not part of it, and may be one more than the largest
// hash.
func parseHashRange(r sharding.ShardRangeRequirement) (hashRange, error) {
	const all = "0x10000000000000000"
	first, err := strconv.ParseUint(strings.TrimPrefix(r.Start, "0x"), 16, 64)
	if err != nil {
		return hashRange{}, fmt.Errorf("%s is no hash of 16 hexadecimal digits", r.Start)
	}
	if r.End == all {
		return hashRange{first, math.MaxUint64}, nil
	}
	end, err := strconv.ParseUint(strings.TrimPrefix(r.End, "0x"), 16, 64)
	if err != nil || end <= first {
		return hashRange{}, fmt.Errorf("%s is no end of a range that begins with %s", r.End, r.Start)
	}
	return hashRange{first, end - 1}, nil
}

// String is the selector as API servers write it.
func (s *Shard) String() string { return s.selector }

func (s *Shard) has(o *Object) bool { return s.holds(o.Namespace(), o.UID()) }

// holds reports whether an object is in the Shard. What objects are parted by does not change in
// their life.
func (s *Shard) holds(namespace, uid string) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.field(namespace, uid))) // which has no errors
	sum := h.Sum64()
	_, in := slices.BinarySearchFunc(s.ranges, sum, func(r hashRange, sum uint64) int {
		switch {
		case r.last < sum:
			return -1
		case r.first > sum:
			return 1
		}
		return 0
	})
	return in
}
