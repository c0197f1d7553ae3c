package gate

import (
	"testing"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/access/accesstest"
)

// TestTokenIsShownToWhomTheRequestIsAbout: a cluster whose API server may not see a token
// is not asked about it, whatever the request is asked on its way.
func TestTokenIsShownToWhomTheRequestIsAbout(t *testing.T) {
	for _, url := range []string{"/v1/query?resources=pods&cluster=east", "/clusters/east/api/v1/pods", "/v1/query?cluster=north&cluster=east"} {
		w := newWorld(false, "east", "west")
		w.apis["east"].Token("of-east", accesstest.Named("jane"))
		w.apis["east"].Allow(allow("jane"))
		a, err := w.Asker(request(url, "of-east"))
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if access.Stranger(t.Context(), a, "east") || !access.Stranger(t.Context(), a, "west") {
			t.Errorf("%s: a stranger in east: %v, in west: %v", url, access.Stranger(t.Context(), a, "east"), access.Stranger(t.Context(), a, "west"))
		}
		if sees(t, a, "west") {
			t.Errorf("%s: sees west", url)
		}
		if n := w.apis["west"].TokenReviews(); n != 0 {
			t.Errorf("%s: west was shown the token %d times", url, n)
		}
	}
}
