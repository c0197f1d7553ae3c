package authn

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/informerd/informerd/server/access/accesstest"
)

func from(address, token string) *http.Request {
	r := withToken(token)
	r.RemoteAddr = address
	return r
}

// TestGarbageStarvesNobody: whoever sends tokens that nobody knows keeps neither another
// address waiting, nor, from many addresses, those whose tokens were good lately.
func TestGarbageStarvesNobody(t *testing.T) {
	for name, addresses := range map[string]int{"one address": 1, "many addresses": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := &accesstest.API{}
				api.Token("good", accesstest.Named("jane"))
				api.Token("new", accesstest.Named("bob"))
				api.Delay(time.Second)
				a := New(Options{Tokens: api})
				if _, err := a.Authenticate(t.Context(), from("10.1.0.1:1", "good")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(DefaultTTL + time.Second)
				for i := range 1000 {
					go func() {
						_, _ = a.Authenticate(t.Context(), from(fmt.Sprintf("10.2.%d.%d:%d", i%addresses/250, i%addresses%250, i+1), fmt.Sprint("garbage", i)))
					}()
				}
				synctest.Wait()
				began := time.Now()
				if _, err := a.Authenticate(t.Context(), from("10.1.0.1:2", "good")); err != nil || time.Since(began) > 1100*time.Millisecond {
					t.Errorf("a good token after %v: %v", time.Since(began), err)
				}
				began = time.Now()
				if _, err := a.Authenticate(t.Context(), from("10.1.0.2:2", "new")); addresses == 1 && (err != nil || time.Since(began) > 1100*time.Millisecond) {
					t.Errorf("a new token after %v: %v", time.Since(began), err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := len(a.tokens.senders); n != 0 {
					t.Errorf("%d senders are left", n)
				}
			})
		})
	}
}

// TestGoodIsBounded: as many tokens as are sent are not remembered, nor one that is good
// no more.
func TestGoodIsBounded(t *testing.T) {
	tokens := newTokens(&accesstest.API{}, nil, time.Second, func(error) {})
	for i := range 5 * maxGood {
		tokens.note([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, true)
	}
	if n := len(tokens.good) + len(tokens.old); n > 2*maxGood {
		t.Errorf("%d are remembered", n)
	}
	last := 5*maxGood - 1
	tokens.note([32]byte{byte(last), byte(last >> 8), byte(last >> 16)}, false)
	if n := len(tokens.good); n != maxGood-1 {
		t.Errorf("%d are good", n)
	}
}

// TestRefusedTokensRest: whoever makes up tokens has the API server work for some 64 a second, and
// nobody at another address waits for that.
func TestRefusedTokensRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &accesstest.API{}
		api.Token("new", accesstest.Named("bob"))
		api.Delay(time.Millisecond)
		a := New(Options{Tokens: api})
		end := time.Now().Add(10 * time.Second)
		for i := range 64 {
			go func() {
				for n := 0; time.Now().Before(end); n++ {
					_, _ = a.Authenticate(t.Context(), from("10.2.0.1:1", fmt.Sprintf("garbage-%d-%d", i, n)))
				}
			}()
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		if _, err := a.Authenticate(t.Context(), from("10.1.0.1:1", "new")); err != nil || time.Since(began) > 10*time.Millisecond {
			t.Errorf("a new token from elsewhere after %v: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
		// As many as may be refused, and each second those who went on with them.
		if n, least := api.TokenReviews(), 10*refusedRate; n < least || n > least+refusedBurst+10*maxReviews/2 {
			t.Errorf("%d tokens were reviewed in 10 s, want %d and some", n, least)
		}
	})
}
