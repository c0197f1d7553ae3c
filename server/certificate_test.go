package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/cert"
)

// writePair makes a certificate of 127.0.0.1 and writes it.
func writePair(t *testing.T, files TLS) (pem []byte) {
	t.Helper()
	pem, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	write(t, files.CertFile, pem)
	write(t, files.KeyFile, key)
	return pem
}

func write(t *testing.T, file string, data []byte) {
	t.Helper()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func filesIn(dir string) TLS {
	return TLS{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
}

// TestHTTPS: with a certificate there is HTTPS, and HTTP/2, alone.
func TestHTTPS(t *testing.T) {
	files := filesIn(t.TempDir())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(writePair(t, files))
	w := newWorld(t, func(o *Options) { o.TLS = files })
	plain := serve(t, w)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Get(w.URL() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ProtoMajor != 2 || !strings.HasPrefix(w.URL(), "https://127.0.0.1:") {
		t.Errorf("%s answers %s in %s", w.URL(), resp.Status, resp.Proto)
	}
	if resp, err := http.Get(plain + "/livez"); err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP is answered %s", resp.Status)
		}
	}
}

// TestBadCertificate: a server does not start with one.
func TestBadCertificate(t *testing.T) {
	files, other := filesIn(t.TempDir()), filesIn(t.TempDir())
	writePair(t, files)
	writePair(t, other)
	for name, bad := range map[string]TLS{
		"no file":     filesIn(t.TempDir()),
		"swapped":     {CertFile: files.KeyFile, KeyFile: files.CertFile},
		"another key": {CertFile: files.CertFile, KeyFile: other.KeyFile},
		"no key":      {CertFile: files.CertFile},
	} {
		w := newWorld(t)
		if _, err := New(Options{Caches: w.Caches, TLS: bad}); err == nil || !strings.Contains(err.Error(), "certificate to serve with") {
			t.Errorf("%s: New() = %v", name, err)
		}
	}
}

// TestRenewedCertificate: new files are used; files that are no pair are told of
// once, and change nothing.
func TestRenewedCertificate(t *testing.T) {
	files := filesIn(t.TempDir())
	first := writePair(t, files)
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c, err := loadCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		stop := c.follow(t.Context())
		write(t, files.CertFile, []byte("half of one"))
		time.Sleep(3 * certificatePoll)
		synctest.Wait()
		wantServed(t, c, first)
		second := writePair(t, files)
		time.Sleep(3 * certificatePoll)
		synctest.Wait()
		wantServed(t, c, second)
		stop()
		for message, want := range map[string]int{"cannot use": 1, "renewed": 1} {
			if got := strings.Count(log.String(), message); got != want {
				t.Errorf("%d times %q in the log, want %d:\n%s", got, message, want, log.String())
			}
		}
	})
}

func wantServed(t *testing.T, c *certificate, pem []byte) {
	t.Helper()
	served, err := c.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.ParseCertsPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(served.Certificate[0], certs[0].Raw) {
		t.Error("another certificate is served")
	}
}
