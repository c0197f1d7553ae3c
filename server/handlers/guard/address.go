package guard

import (
	"encoding/binary"
	"net/netip"
)

// class is what kind of address one is.
type class int

const (
	public class = iota
	// private: of this machine or of a network of its own. A name may allow it.
	private
	// special: what no sink has, but what answers secrets (metadata of clouds) or reaches
	// whoever happens to be near.
	special
)

type block struct {
	prefix netip.Prefix
	class  class
}

// blocks are the addresses that are not public; the first that fits decides.
var blocks = func() (all []block) {
	add := func(c class, texts ...string) {
		for _, text := range texts {
			all = append(all, block{netip.MustParsePrefix(text), c})
		}
	}
	add(special,
		// Metadata of clouds at addresses that are not link-local.
		"fd00:ec2::/32", "fd20:ce::254/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		// "This network", which Linux takes for this machine; link-local; multicast; reserved.
		"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"::/128", "fe80::/10", "ff00::/8", "100::/64",
		// Teredo hides an address and a port of IPv4 behind a relay; 64:ff9b:1::/48 is
		// whatever a network translates.
		"2001::/32", "64:ff9b:1::/48",
	)
	add(private,
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
		"100.64.0.0/10", // behind a carrier's NAT, and Tailscale's
		"198.18.0.0/15", // benchmarks of networks
		"::1/128", "fc00::/7", "fec0::/10",
	)
	return all
}()

func classOf(addr netip.Addr) class {
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.class
		}
	}
	return public
}

var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	compatible = netip.MustParsePrefix("::/96")
)

// embedded is the address of IPv4 that one of IPv6 leads to; invalid if there is none.
// IPv4-mapped ones are unmapped before.
func embedded(addr netip.Addr) netip.Addr {
	if !addr.Is6() {
		return netip.Addr{}
	}
	b := addr.As16()
	switch {
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case nat64.Contains(addr):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case compatible.Contains(addr) && binary.BigEndian.Uint32(b[12:]) > 1: // not :: and ::1
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	return netip.Addr{}
}
