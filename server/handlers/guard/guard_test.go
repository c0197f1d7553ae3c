package guard

import (
	"net/netip"
	"testing"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func guardOf(t testing.TB, host string, allow ...string) *Guard {
	t.Helper()
	var m sinkconf.Mistakes
	g := New(&m, "allowPrivate", allow)
	if err := m.Err(); err != nil {
		t.Fatal(err)
	}
	g.Host = host
	return g
}

func TestAddresses(t *testing.T) {
	plain := guardOf(t, "a.example")
	named := guardOf(t, "a.example", "A.example.")
	for address, c := range map[string]class{
		"8.8.8.8": public, "2606:4700::1111": public, "172.32.0.1": public, "100.128.0.1": public,
		"::ffff:8.8.8.8": public, "64:ff9b::808:808": public, "2002:808:808::1": public,
		"127.0.0.1": private, "127.9.9.9": private, "::1": private, "10.0.0.1": private,
		"172.16.0.1": private, "172.31.255.255": private, "192.168.0.1": private,
		"100.64.0.1": private, "fc00::1": private, "fd12::1": private, "198.18.0.1": private,
		"::ffff:10.0.0.1": private, "64:ff9b::a00:1": private, "2002:a00:1::": private,
		"::ffff:127.0.0.1": private, "64:ff9b::7f00:1": private, "::10.0.0.1": private, "2002:7f00:1::1": private,
		"0.0.0.0": special, "0.1.2.3": special, "::": special, "169.254.169.254": special,
		"fe80::1": special, "fe80::1%eth0": special, "224.0.0.1": special, "ff02::1": special,
		"255.255.255.255": special, "240.0.0.1": special, "::ffff:169.254.169.254": special,
		"64:ff9b::a9fe:a9fe": special, "2002:a9fe:a9fe::1": special, "64:ff9b:1::a9fe:a9fe": special,
		"2001:0:1::1": special, "fd00:ec2::254": special, "fd00:ec2::23": special, "fd20:ce::254": special, "100.100.100.200": special,
		"168.63.129.16": special, "::169.254.169.254": special, "192.0.0.192": special,
	} {
		addr := netip.MustParseAddr(address)
		if taken := plain.Check(addr) == nil; taken != (c == public) {
			t.Errorf("%s is dialled: %v", address, taken)
		}
		if taken := named.Check(addr) == nil; taken != (c != special) {
			t.Errorf("%s is dialled for a name that is allowed: %v", address, taken)
		}
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		allow, address string
		want           bool
	}{
		{"10.0.0.0/8", "10.1.2.3", true}, {"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"10.0.0.0/8", "64:ff9b::a01:203", true}, {"10.0.0.0/8", "192.168.0.1", false},
		{"10.0.0.7", "10.0.0.7", true}, {"10.0.0.7", "10.0.0.8", false},
		{"::1", "::1", true}, {"[::1]", "::1", true}, {"::1", "127.0.0.1", false},
		{"169.254.0.0/16", "169.254.169.254", true}, {"b.example", "10.0.0.1", false},
	} {
		if got := guardOf(t, "a.example", c.allow).Check(netip.MustParseAddr(c.address)) == nil; got != c.want {
			t.Errorf("with %s, %s is dialled: %v", c.allow, c.address, got)
		}
	}
	g := guardOf(t, "a.example", "a.example", "8.8.4.4")
	g.Plain = true
	for address, want := range map[string]bool{"10.0.0.1": true, "8.8.8.8": false, "8.8.4.4": true, "169.254.169.254": false} {
		if got := g.Check(netip.MustParseAddr(address)) == nil; got != want {
			t.Errorf("by plain http, %s is dialled: %v", address, got)
		}
	}
}

// FuzzAddresses: however an address of IPv4 is written in IPv6, it is judged as itself.
func FuzzAddresses(f *testing.F) {
	for _, ip := range []uint32{0x7f000001, 0xa9fea9fe, 0x0a000001, 0x08080808, 0, 0xffffffff} {
		f.Add(byte(ip>>24), byte(ip>>16), byte(ip>>8), byte(ip))
	}
	f.Fuzz(func(t *testing.T, a, b, c, d byte) {
		v4 := netip.AddrFrom4([4]byte{a, b, c, d})
		g := guardOf(t, "a.example")
		want := g.Check(v4) == nil
		if std := v4.IsPrivate() || v4.IsLoopback() || v4.IsLinkLocalUnicast() || v4.IsMulticast() || v4.IsUnspecified(); std && want {
			t.Errorf("%s is dialled", v4)
		}
		mapped := netip.AddrFrom16(v4.As16())
		nat := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: a, b, c, d})
		six := netip.AddrFrom16([16]byte{0x20, 0x02, a, b, c, d, 15: 1})
		for _, addr := range []netip.Addr{mapped, nat, six} {
			if got := g.Check(addr) == nil; got != want {
				t.Errorf("%s is dialled: %v; %s: %v", addr, got, v4, want)
			}
		}
	})
}

// TestPrivate: where private addresses are nothing special, the others still are.
func TestPrivate(t *testing.T) {
	for _, c := range []struct {
		plain   bool
		address string
		want    bool
	}{
		{true, "10.0.0.1", true}, {true, "127.0.0.1", true}, {true, "8.8.8.8", false}, {false, "8.8.8.8", true},
		{false, "169.254.169.254", false}, {true, "169.254.169.254", false}, {false, "fe80::1", false}, {false, "0.0.0.0", false},
	} {
		g := guardOf(t, "a.example")
		g.Private, g.Plain = true, c.plain
		if got := g.Check(netip.MustParseAddr(c.address)) == nil; got != c.want {
			t.Errorf("plain: %v, %s is dialled: %v", c.plain, c.address, got)
		}
	}
}
