package health

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// certificateUntil is a certificate as a Secret has it.
func certificateUntil(t *testing.T, end time.Time, name string, hosts ...string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: hosts, NotBefore: noon.Add(-24 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func TestCertificatesInSecrets(t *testing.T) {
	past, next := noon.Add(-time.Hour), noon.Add(time.Hour)
	secretOf := func(kind, crt string) string {
		return made("v1 Secret", time.Hour, fmt.Sprintf(`"data":{"tls.crt":%q,"tls.key":"eA=="},"type":%q`, crt, kind))
	}
	const tls = "kubernetes.io/tls"
	for name, test := range map[string]struct {
		json, want string
		until      time.Time
	}{
		"expired":              {secretOf(tls, certificateUntil(t, past, "shop.example.com")), "bad Expired: its certificate of shop.example.com expired at 2026-01-02T11:00:00Z", zero},
		"by its host":          {secretOf(tls, certificateUntil(t, past, "", "www.example.com")), "bad Expired: its certificate of www.example.com expired at 2026-01-02T11:00:00Z", zero},
		"without a name":       {secretOf(tls, certificateUntil(t, past, "")), "bad Expired: its certificate expired at 2026-01-02T11:00:00Z", zero},
		"valid":                {secretOf(tls, certificateUntil(t, next, "shop.example.com")), "good", next},
		"of another type":      {secretOf("Opaque", certificateUntil(t, past, "shop.example.com")), "good", zero},
		"redacted":             {secretOf(tls, ""), "good", zero},
		"no base64":            {secretOf(tls, "%"), "good", zero},
		"no PEM":               {secretOf(tls, "eA=="), "good", zero},
		"no certificate in it": {secretOf(tls, base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n"))), "good", zero},
		"without data":         {made("v1 Secret", time.Hour, `"type":"kubernetes.io/tls"`), "good", zero},
		"odd":                  {made("v1 Secret", time.Hour, `"type":7,"data":[]`), "good", zero},
		"being deleted":        {`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","deletionTimestamp":"2026-01-02T11:59:00Z"},"type":"kubernetes.io/tls"}`, "progressing", noon.Add(4 * time.Minute)},
	} {
		h := JudgeOf(schema.GroupKind{Kind: "Secret"}).Judge([]byte(test.json), noon)
		if got := h.verdict(); got != test.want && h.Status.String() != test.want || !h.Until.Equal(test.until) {
			t.Errorf("%s: %q until %s, want %q until %s", name, got, h.Until, test.want, test.until)
		}
	}
}

// TestExpiryIsNoticed: nothing changes when a certificate expires, and it is told all the same.
func TestExpiryIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.addKind("secrets v1 Secret")
	now := noon
	w.index.now = func() time.Time { return now }
	w.Put("secrets", "a/x", fmt.Sprintf(`{"data":{"tls.crt":%q},"type":"kubernetes.io/tls"}`, certificateUntil(t, noon.Add(time.Hour), "shop")))
	if a := w.ask(); len(a.Items) != 0 {
		t.Errorf("before: %v", a.text())
	}
	now = noon.Add(2 * time.Hour)
	if a := w.ask(); len(a.Items) != 1 || a.Items[0].Reason != "Expired" {
		t.Errorf("after: %v", a.text())
	}
}
