package server

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/informerd/informerd/cache"
)

// TestAhead: what is shown of the objects of a long list is the same, and in the same order,
// as if one goroutine made it, however large they are; and it ends with the question.
func TestAhead(t *testing.T) {
	w := newWorld(t)
	var objects []string
	for i := range 5 * aheadFrom {
		o := pod("a", fmt.Sprintf("pod-%03d", i), "web", "n1", i+1)
		message := strings.Repeat("long and longer ", i%7*i%9000) // several reads, of unlike objects
		objects = append(objects, strings.Replace(o, `"status":{`, `"status":{"message":"`+message+`",`, 1))
	}
	w.pods.replace(t, "900", objects...)
	page, err := w.pods.store.Page(t.Context(), cache.Query{}, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, o := range page.Objects {
		size += o.Size()
	}
	if size < 2*aheadSize {
		t.Fatalf("%d bytes are read at once", size)
	}
	for _, query := range []string{"fields=metadata.name,spec.containers[*].image", "fields=status", "fields=metadata.none", "view=metadata", ""} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		v, err := parseView(params{Values: values})
		if err != nil {
			t.Fatal(err)
		}
		one := &encoder{view: v}
		show := itemsOf(t.Context(), &encoder{view: v}, page.Objects)
		for i, o := range page.Objects {
			want, err := one.append([]byte("before"), 0, o)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := show([]byte("before"), i); err != nil || string(got) != string(want) {
				t.Fatalf("%s: item %d: %.300s, %v; want %.300s", query, i, got, err, want)
			}
		}
		if got, err := show(nil, 0); err != nil || !strings.HasPrefix(string(got), "{") {
			t.Errorf("%s: the first item again: %.300s, %v", query, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
	l := objectList(r.Context(), &cache.View{Spec: w.pods.spec}, page, partialView)
	if _, err := l.item(nil, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("the question has ended: %v", err)
	}
}
