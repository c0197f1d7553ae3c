package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// TestMutualTLS lets a client and a server of one authority meet.
func TestMutualTLS(t *testing.T) {
	ca, err := OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ca.Server("server", "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	client, err := ca.Client("admin", "alice", "system:masters", "dev")
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca.CertPEM)

	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		if subject.CommonName != "alice" || len(subject.Organization) != 2 {
			t.Errorf("client certificate is for %v", subject)
		}
	}))
	ts.TLS = &tls.Config{
		Certificates: []tls.Certificate{keyPair(t, server)},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    pool,
	}
	ts.StartTLS()
	defer ts.Close()

	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs:      pool,
		Certificates: []tls.Certificate{keyPair(t, client)},
	}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestReopenKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	open := func() (ca *Authority, client *Pair, key []byte) {
		ca, err := OpenAuthority(dir, "ca")
		if err != nil {
			t.Fatal(err)
		}
		if client, err = ca.Client("admin", "admin", "system:masters"); err != nil {
			t.Fatal(err)
		}
		path, err := OpenKey(dir, "service-account")
		if err != nil {
			t.Fatal(err)
		}
		if key, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		return ca, client, key
	}
	ca1, client1, key1 := open()
	ca2, client2, key2 := open()
	if !bytes.Equal(ca1.CertPEM, ca2.CertPEM) || !bytes.Equal(client1.CertPEM, client2.CertPEM) || !bytes.Equal(key1, key2) {
		t.Error("reopening a directory made new keys")
	}
	// A certificate signed after reopening is still of the same authority.
	late, err := ca2.Client("late", "late")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := parseCertificate(late.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.CheckSignatureFrom(ca1.Cert); err != nil {
		t.Error(err)
	}
}

func keyPair(t *testing.T, p *Pair) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(p.CertPEM, p.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
