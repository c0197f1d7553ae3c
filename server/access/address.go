package access

import "net/netip"

// AddressOf is whom a request comes from by its remote address, without the port. Whoever has
// an address of IPv6 has a network of them, which counts as one.
func AddressOf(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
