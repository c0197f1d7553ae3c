// Package accesstest is for tests of who asks: authorities, certificates, and an API
// server that reviews tokens and access.
package accesstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// CA is a certificate authority.
type CA struct {
	PEM  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes one.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: serial(t),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key, der := sign(t, template, nil)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &CA{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert, key}
}

// Pool is of this authority alone.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return pool
}

// Client makes a certificate of a client, in groups.
func (ca *CA) Client(t testing.TB, name string, groups ...string) tls.Certificate {
	t.Helper()
	return ca.Issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: groups}})
}

// Server makes a certificate for loopback.
func (ca *CA) Server(t testing.TB) tls.Certificate {
	t.Helper()
	return ca.Issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "informerd"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	})
}

// Issue makes a certificate, of a client and for an hour unless the template says
// otherwise.
func (ca *CA) Issue(t testing.TB, template *x509.Certificate) tls.Certificate {
	t.Helper()
	template.SerialNumber = serial(t)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	template.NotBefore = template.NotAfter.Add(-2 * time.Hour)
	if template.ExtKeyUsage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	key, der := sign(t, template, ca)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Files are the PEM forms of a certificate.
func Files(t testing.TB, c tls.Certificate) (cert, key []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// sign makes a key and its certificate, by ca or by itself.
func sign(t testing.TB, template *x509.Certificate, ca *CA) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, by := template, key
	if ca != nil {
		parent, by = ca.cert, ca.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
