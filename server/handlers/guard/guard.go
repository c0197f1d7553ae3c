package guard

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Guard decides which addresses are dialled. It must not be modified while it is in use.
type Guard struct {
	// Host is the one that is dialled. A name that is allowed may have private addresses.
	Host string
	// Plain: what is sent is not encrypted, so that only private addresses are dialled.
	Plain bool
	// Private: private addresses are dialled without being allowed.
	Private bool

	field    string         // what allows is called so in the configuration
	hosts    []string       // may have private addresses, in lower case
	networks []netip.Prefix // may be dialled whatever is in them
}

// New reads what is allowed: host names, addresses and networks. What is wrong is noted as a
// mistake of field.
func New(m *sinkconf.Mistakes, field string, allow []string) *Guard {
	g := &Guard{field: field}
	for i, text := range allow {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			g.networks = append(g.networks, prefix.Masked())
		} else if addr, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			g.networks = append(g.networks, netip.PrefixFrom(addr, addr.BitLen()))
		} else if name := hostName(text); len(validation.IsDNS1123Subdomain(name)) == 0 && !numeric(name) {
			g.hosts = append(g.hosts, name)
		} else {
			m.Add(fmt.Sprintf("%s[%d]", field, i), "%q is no host name, address or network: write one such as hooks.shop.svc, 10.0.0.7 or 10.0.0.0/8", sinkconf.Printable(text))
		}
	}
	return g
}

// Empty reports whether nothing is allowed.
func (g *Guard) Empty() bool { return len(g.hosts)+len(g.networks) == 0 }

func hostName(text string) string { return strings.ToLower(strings.TrimSuffix(text, ".")) }

// numeric reports whether a name looks like an address that it is not, such as 10.0.0.
func numeric(name string) bool { return strings.Trim(name, "0123456789./:") == "" }

// Refused is the error of an address that is not dialled.
type Refused struct {
	Addr netip.Addr
	Why  string
}

func (e *Refused) Error() string {
	return fmt.Sprintf("address %s is %s", e.Addr, e.Why)
}

// Control is net.Dialer's ControlContext: it is called with each address before it is dialled.
func (g *Guard) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Refused{Why: "none that can be checked"}
	}
	return g.Check(at.Addr())
}

// Check returns why an address is refused, nil if it may be dialled.
func (g *Guard) Check(addr netip.Addr) error {
	addr = addr.WithZone("").Unmap()
	inner := embedded(addr)
	if g.allows(addr) || inner.IsValid() && g.allows(inner) {
		return nil
	}
	class := classOf(addr)
	if inner.IsValid() && class == public {
		class = classOf(inner)
	}
	named := g.Private || slices.Contains(g.hosts, hostName(g.Host))
	switch {
	case class == public && g.Plain:
		return &Refused{addr, "a public one, and what is not encrypted is sent to private ones only: use TLS"}
	case class == public, class == private && named:
		return nil
	case class == private:
		return &Refused{addr, "a private one or this machine's: if it is meant, allow the host, or the address, in " + g.field}
	}
	return &Refused{addr, "link-local, of a cloud's metadata, or reserved: if it is meant, allow the address itself, or its network, in " + g.field}
}

func (g *Guard) allows(addr netip.Addr) bool {
	return slices.ContainsFunc(g.networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
