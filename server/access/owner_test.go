package access

import "testing"

// TestOwnerOf: nobody becomes many by names that they may choose.
func TestOwnerOf(t *testing.T) {
	for name, want := range map[string]string{
		"jane":                           "jane",
		"system:serviceaccount:shop:a":   "system:serviceaccount:shop",
		"system:serviceaccount:shop:b":   "system:serviceaccount:shop",
		"system:serviceaccount:bank:a":   "system:serviceaccount:bank",
		"system:serviceaccount:shop:a:b": "system:serviceaccount:shop:a:b",
		"system:node:a":                  "system:node:a",
		"":                               "",
	} {
		if got := OwnerOf(name); got != want {
			t.Errorf("OwnerOf(%q) = %q, want %q", name, got, want)
		}
	}
}
