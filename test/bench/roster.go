package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/informerd/informerd/cache/rawjson"
	"github.com/informerd/informerd/test/standin"
)

// roster is which pods of a stand-in were seen, by their numbers.
type roster struct {
	pods *standin.Pods
	seen []bool
	left int // that were not
}

func newRoster(pods *standin.Pods) *roster {
	return &roster{pods: pods, seen: make([]bool, pods.Count), left: pods.Count}
}

// readList sees the pods of a JSON list. A list that ends early is an error, and so is a pod that
// is not of the stand-in or is there twice.
func (r *roster) readList(list io.Reader) error {
	items := rawjson.NewListReader(list, 0)
	for {
		item, err := items.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.see(item)
		}
		if err != nil {
			return fmt.Errorf("read a list of pods, of which %d are missing until there: %w", r.left, err)
		}
	}
}

// see notes the pod of an item. The first member of that name is the pod's own: those of its
// containers come after its metadata.
func (r *roster) see(item []byte) error {
	name, ok := stringAfter(item, `"name":"`)
	digits := name[strings.LastIndexByte(name, '-')+1:]
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= len(r.seen) || r.pods.Name(n) != name {
		return fmt.Errorf("there is no such pod: %.300s", item)
	}
	if r.seen[n] {
		return fmt.Errorf("pod %s is there twice", name)
	}
	r.seen[n] = true
	r.left--
	return nil
}
