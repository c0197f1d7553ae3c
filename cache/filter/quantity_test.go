package filter

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/api/resource"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// TestQuantities: what is remembered is what is read, more texts than are
// remembered, at once and whatever is done to the answers.
func TestQuantities(t *testing.T) {
	texts := []string{"", "x", "1 Gi", "0", "-0.7Gi", "1e3", "0.1n", "999999999999999999999", strings.Repeat("1", 100), "1.1111111111111111111"}
	for n := range 1000 {
		texts = append(texts, fmt.Sprintf("%dm", n), fmt.Sprintf("%d.7Gi", n))
	}
	s := newQuantities()
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 3 {
				for _, text := range texts {
					checkQuantity(t, s, text)
				}
			}
		})
	}
	readers.Wait()
}

func checkQuantity(t *testing.T, s *quantities, text string) {
	want, err := resource.ParseQuantity(text)
	got := s.quantity(types.String(text))
	q, ok := got.(apiservercel.Quantity)
	if ok != (err == nil) || !ok && !strings.Contains(fmt.Sprint(got), err.Error()) {
		t.Errorf("quantity(%q) is %v, want %v %v", text, got, want, err)
	}
	if !ok {
		return
	}
	if got, want := q.String(), want.String(); got != want {
		t.Errorf("quantity(%q) is %s, want %s", text, got, want)
	}
	if q.Cmp(want) != 0 {
		t.Errorf("quantity(%q) is not equal to itself", text)
	}
	// As the library does, and worse.
	q.AsDec()
	q.Add(resource.MustParse("0.3Gi"))
	q.Neg()
}

// TestQuantitiesOfExpressions: constants and fields keep their values from object to
// object, added to or not.
func TestQuantitiesOfExpressions(t *testing.T) {
	f, err := Compile(`quantity("0.7Gi").add(quantity(object.a)).compareTo(quantity("1.4Gi")) == 0 && quantity("0.7Gi").compareTo(quantity(object.a)) == 0`, noon)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		if got := evaluated(f, []byte(`{"a":"0.7Gi"}`)); got != "bool true" {
			t.Fatalf("object %d: %s", n, got)
		}
	}
}
