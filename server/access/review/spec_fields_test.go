package review

import "testing"

// TestFieldRequirementWithoutField: a review with a requirement that has no key is
// invalid, and would be no verdict.
func TestFieldRequirementWithoutField(t *testing.T) {
	for selector, want := range map[string]int{"=x": 0, "!=x": 0, "=x,a=b": 1} {
		n := 0
		if f := fieldRequirements(selector); f != nil {
			if n = len(f.Requirements); n == 0 {
				t.Errorf("%s is an empty list", selector)
			}
		}
		if n != want {
			t.Errorf("%s has %d requirements, want %d", selector, n, want)
		}
	}
}
