package health

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"time"
)

// secret is bad when it holds a certificate that has expired. What the configuration redacts
// is empty, and nothing is known against it.
func secret(o *object) Health {
	if !is(o.typ, "kubernetes.io/tls") {
		return Health{}
	}
	c := firstCertificate(text(o.data.Get("tls.crt")))
	switch {
	case c == nil:
		return Health{}
	case o.now.Before(c.NotAfter):
		return Health{Until: c.NotAfter}
	}
	of := ""
	if name := c.Subject.CommonName; name != "" {
		of = " of " + name
	} else if len(c.DNSNames) > 0 {
		of = " of " + c.DNSNames[0]
	}
	return Health{
		Status: Bad, Reason: "Expired", Since: c.NotAfter,
		Message: fmt.Sprintf("its certificate%s expired at %s", of, c.NotAfter.UTC().Format(time.RFC3339)),
	}
}

// firstCertificate is the one that a server shows as its own: those that follow it lead to
// its root. It is nil of what is none.
func firstCertificate(encoded string) *x509.Certificate {
	if encoded == "" {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// managedCertificate is a Certificate of cert-manager, which is Ready for as long as what was
// issued is valid, also while it cannot be renewed. The condition Issuing is there while
// something is being issued, and False after that has failed.
func managedCertificate(o *object) Health {
	h := custom(o)
	c := o.condition("Issuing")
	if h.Status == Bad || !c.isFalse() {
		return h
	}
	failed := c.health(Bad, "IssuingFailed", "the last try to issue it has failed")
	if failed.Reason == "Failed" {
		failed.Reason = "IssuingFailed"
	}
	failed.Until = h.Until
	return failed
}
