package cache

import "testing"

// TestPublicAddress: what is logged and shown has no password in it.
func TestPublicAddress(t *testing.T) {
	for address, want := range map[string]string{
		"https://10.0.0.1:6443":            "https://10.0.0.1:6443",
		"https://user:pass@10.0.0.1:6443":  "https://user:xxxxx@10.0.0.1:6443",
		"user:pass@10.0.0.1:6443":          "user:xxxxx@10.0.0.1:6443",
		"https://user:p%zz@host/prefix":    "xxxxx@host/prefix",
		"https://user:p@ss@host:1/p?a=b@c": "https://user:xxxxx@host:1/p?a=b@c",
		"localhost:8080":                   "localhost:8080",
		"":                                 "",
	} {
		if got := PublicAddress(address); got != want {
			t.Errorf("PublicAddress(%q) = %q, want %q", address, got, want)
		}
	}
}
