package webhook

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"bytes"
	"io"
)

// TestBothModes: what arrives is what the SDK reads as the same event in both modes.
func TestBothModes(t *testing.T) {
	for _, mode := range []string{"", Structured, Binary} {
		t.Run(mode, func(t *testing.T) {
			r := receive(t, ok)
			s := open(t, r.URL+"/hook?x=1", func(c *Config) { c.Mode = mode })
			d := delivery()
			d.Name = `wéb "1"%` // names of RBAC's kinds may have all of that
			if err := s.Deliver(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			got := r.requests()[0]
			if got.Method != "POST" || got.URL.String() != "/hook?x=1" || got.Header.Get("User-Agent") != "informerd" {
				t.Errorf("%s %s %v", got.Method, got.URL, got.Header)
			}
			wantType := "application/cloudevents+json"
			if mode == Binary {
				wantType = "application/json"
				if subject := got.Header.Get("Ce-Subject"); subject != `deployments.apps/shop/w%C3%A9b%20%221%22%25` {
					t.Errorf("ce-subject is %q", subject)
				}
			}
			if got.Header.Get("Content-Type") != wantType {
				t.Errorf("content type %q", got.Header.Get("Content-Type"))
			}
			m := cehttp.NewMessage(got.Header, io.NopCloser(bytes.NewReader(got.body)))
			e, err := binding.ToEvent(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Validate(); err != nil {
				t.Error(err)
			}
			if e.ID() != d.ID || e.Source() != "/clusters/main/handlers/h" || e.Type() != "io.informerd.object.changes" || !e.Time().Equal(d.Since) {
				t.Errorf("event is %s", e)
			}
			if seq := e.Extensions()["sequence"]; seq != "00000000000000000007" {
				t.Errorf("sequence is %v", seq)
			}
			var data map[string]any
			if err := json.Unmarshal(e.Data(), &data); err != nil {
				t.Fatal(err)
			}
			if data["name"] != d.Name || data["resource"] != "deployments" || data["object"].(map[string]any)["kind"] != "Deployment" {
				t.Errorf("data is %s", e.Data())
			}
		})
	}
}

// TestSignatureIsTheStandards: the project's own library takes it, with each secret.
func TestSignatureIsTheStandards(t *testing.T) {
	const whsec, raw = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "raw bytes, 24 or more of them"
	r := receive(t, ok)
	s := open(t, r.URL, func(c *Config) {
		c.SecretFiles = []string{file(t, whsec+"\n"), file(t, raw)}
	})
	if err := s.Deliver(t.Context(), delivery()); err != nil {
		t.Fatal(err)
	}
	got := r.requests()[0]
	first, _ := standardwebhooks.NewWebhook(whsec)
	second, _ := standardwebhooks.NewWebhookRaw([]byte(raw))
	for _, w := range []*standardwebhooks.Webhook{first, second} {
		if err := w.Verify(got.body, got.Header); err != nil {
			t.Errorf("signature is not taken: %v", err)
		}
		if err := w.Verify(append(got.body, ' '), got.Header); err == nil {
			t.Error("the signature fits another body")
		}
	}
	other, _ := standardwebhooks.NewWebhook("whsec_" + "AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err := other.Verify(got.body, got.Header); err == nil {
		t.Error("another secret fits")
	}
}

// TestPublishedSignature is the example that Svix, who wrote the standard, publishes.
func TestPublishedSignature(t *testing.T) {
	s, err := New(Config{URL: "https://a.example", SecretFiles: []string{file(t, "whsec_plJ3nmyCDGBKInavdOK15jsl")}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.signer.sign("msg_loFOjxBNrRLzqYUf", time.Unix(1731705121, 0), []byte(`{"event_type":"ping","data":{"success":true}}`))
	if want := "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="; got != want || err != nil {
		t.Errorf("signature %q, %v; want %q", got, err, want)
	}
}

// TestSecretsAreReadAgain: a new secret and a new value of a header are used without a
// restart, and a secret that is gone is not used on.
func TestSecretsAreReadAgain(t *testing.T) {
	const before, after = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_AAAA9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	r := receive(t, ok)
	secret, token := file(t, before), file(t, "Bearer one")
	s := open(t, r.URL, func(c *Config) {
		c.SecretFiles, c.HeaderFiles = []string{secret}, map[string]string{"authorization": token}
	})
	verify := func(secret, authorization string) bool {
		t.Helper()
		if err := s.Deliver(t.Context(), delivery()); err != nil {
			t.Fatal(err)
		}
		all := r.requests()
		got := all[len(all)-1]
		w, _ := standardwebhooks.NewWebhook(secret)
		return w.Verify(got.body, got.Header) == nil && got.Header.Get("Authorization") == authorization
	}
	if !verify(before, "Bearer one") {
		t.Error("the first secret or header is not sent")
	}
	write(t, secret, after)
	write(t, token, "Bearer two\n")
	deadline := time.Now().Add(time.Minute)
	for !verify(after, "Bearer two") {
		if time.Now().After(deadline) {
			t.Fatal("the new secret or header is never sent")
		}
		time.Sleep(50 * time.Millisecond)
	}
	write(t, secret, "")
	for s.Deliver(t.Context(), delivery()) == nil {
		if time.Now().After(deadline) {
			t.Fatal("signed on with a secret that is gone")
		}
		time.Sleep(50 * time.Millisecond)
	}
	wantDown(t, s.Deliver(t.Context(), delivery()), secret, "empty")
}

// TestKeptConnections: as few connections as deliveries at once, and one that the server has
// closed meanwhile is no failure.
func TestKeptConnections(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thank you") })
	s := open(t, r.URL, nil)
	for range 5 {
		if err := s.Deliver(t.Context(), delivery()); err != nil {
			t.Fatal(err)
		}
	}
	from := map[string]bool{}
	for _, q := range r.requests() {
		from[q.RemoteAddr] = true
	}
	if len(from) > 2 { // an answer may come later than a delivery waits for its rest
		t.Errorf("5 deliveries one after the other took %d connections", len(from))
	}
}
