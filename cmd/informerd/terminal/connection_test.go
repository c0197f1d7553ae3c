package terminal

import (
	"encoding/pem"
	"io"

	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCredentials: flags show who asks, and say whom to believe.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	target, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer filed" {
			rw.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(rw, `{"kind":"Status","message":"Unauthorized","code":401}`)
			return
		}
		if user := r.Header.Get("Impersonate-User"); user != "" {
			rw.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(rw, `{"kind":"Status","message":"you may not be `+user+`","code":403}`)
			return
		}
		r.Host = target.Host
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	token := file("token", []byte("filed\n"))
	for line, want := range map[string]result{
		"--token-file " + token + " --certificate-authority " + ca:                                               {out: "node/n1\n"},
		"--token filed --certificate-authority " + ca:                                                            {out: "node/n1\n"},
		"--token filed --insecure-skip-tls-verify":                                                               {out: "node/n1\n"},
		"--token-file " + token:                                                                                  {err: "certificate signed by unknown authority", code: ExitNoAnswer},
		"--token other --certificate-authority " + ca:                                                            {err: "give --token-file", code: ExitNoAnswer},
		"--token filed --as jane --certificate-authority " + ca:                                                  {err: "you may not be jane", code: ExitNoAnswer},
		"--token filed --certificate-authority " + ca + " --tls-server-name elsewhere.test":                      {err: "not elsewhere.test", code: ExitNoAnswer},
		"--token filed --certificate-authority " + filepath.Join(dir, "none"):                                    {err: "no such file", code: ExitUsage},
		"--token-file " + filepath.Join(dir, "none") + " --certificate-authority " + ca:                          {err: "no such file", code: ExitUsage},
		"--token filed --certificate-authority " + ca + " --client-certificate " + ca + " --client-key " + token: {err: "--client-certificate, --client-key: tls: ", code: ExitUsage},
	} {
		got := runCommand(t.Context(), append([]string{"get", "nodes", "-o", "name", "--server", s.URL}, strings.Fields(line)...)...)
		if got.out != want.out || got.code != want.code || !strings.Contains(got.err, want.err) {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}
