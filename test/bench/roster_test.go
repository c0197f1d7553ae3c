package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/informerd/informerd/test/standin"
)

func TestRoster(t *testing.T) {
	pods := standin.NewPods(120)
	list := func(of ...int) string {
		var items [][]byte
		for _, i := range of {
			items = append(items, pods.AppendItem(nil, i, 7))
		}
		return fmt.Sprintf(`{"kind":"PodList","items":[%s]}`, bytes.Join(items, []byte(",")))
	}
	all := make([]int, pods.Count)
	for i := range all {
		all[i] = i
	}
	for name, c := range map[string]struct {
		text string
		left int // -1: an error
	}{
		"all":        {list(all...), 0},
		"one less":   {list(all[1:]...), 1},
		"names":      {`{"items":[{"metadata":{"name":"` + pods.Name(3) + `"}}]}`, 119},
		"none":       {list(), 120},
		"twice":      {list(5, 5), -1},
		"cut off":    {strings.TrimSuffix(list(all...), "]}"), -1},
		"of another": {`{"items":[{"metadata":{"name":"service-0000-1"}}]}`, -1},
		"too many":   {`{"items":[{"metadata":{"name":"` + pods.Name(120) + `"}}]}`, -1},
		"no name":    {`{"items":[{"metadata":{}}]}`, -1},
		"no list":    {`{"kind":"Status","status":"Failure"}`, -1},
	} {
		r := newRoster(pods)
		if err := r.readList(strings.NewReader(c.text)); (err != nil) != (c.left < 0) || err == nil && r.left != c.left {
			t.Errorf("%s: %d are left (%v), want %d", name, r.left, err, c.left)
		}
	}
}
