package webhook

import (
	"net"
	"testing"
)

// TestRefusedWhenDialled: a name that resolves to this machine is refused when it is dialled,
// though nothing of it could be known before.
func TestRefusedWhenDialled(t *testing.T) {
	r := receive(t, ok)
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	s, err := New(Config{URL: "https://localhost:" + port + "/s3cret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	wantDown(t, s.Deliver(t.Context(), delivery()), "localhost", "private", "allowPrivate")
	if len(r.requests()) > 0 {
		t.Error("something was sent")
	}
	named := open(t, "http://localhost:"+port, func(c *Config) { c.AllowPrivate = []string{"localhost"} })
	if err := named.Deliver(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
}
