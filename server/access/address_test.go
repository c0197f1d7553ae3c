package access

import "testing"

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:80": "10.0.0.1", "[::ffff:10.0.0.1]:80": "10.0.0.1", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:5": "fe80::/64", "@": "@", "": "",
	} {
		if got := AddressOf(remote); got != want {
			t.Errorf("AddressOf(%q) = %q, want %q", remote, got, want)
		}
	}
}
