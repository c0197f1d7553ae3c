package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/sinktest"
)

func TestAnswers(t *testing.T) {
	future := time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		status int
		after  string
		want   string // kind of the error
		least  time.Duration
		most   time.Duration
	}{
		{200, "", "", 0, 0}, {201, "", "", 0, 0}, {202, "", "", 0, 0}, {204, "", "", 0, 0},
		{301, "", "rejected", 0, 0}, {304, "", "rejected", 0, 0}, {308, "", "rejected", 0, 0},
		{400, "", "rejected", 0, 0}, {401, "", "rejected", 0, 0}, {404, "5", "rejected", 0, 0},
		{408, "", "rejected", 0, 0}, {413, "", "rejected", 0, 0}, {422, "", "rejected", 0, 0},
		{410, "", "gone", 0, 0},
		{429, "", "busy", 5 * time.Second, 5 * time.Second},
		{429, "7", "busy", 7 * time.Second, 7 * time.Second},
		{429, "0", "busy", time.Second, time.Second},
		{429, "-3", "busy", 5 * time.Second, 5 * time.Second},
		{503, "999999999999999999", "busy", time.Hour, time.Hour},
		{503, future, "busy", 30 * time.Second, 91 * time.Second},
		{503, "Mon, 02 Jan 2006 15:04:05 GMT", "busy", time.Second, time.Second},
		{503, "soon", "rejected", 0, 0}, {503, "", "rejected", 0, 0},
		{500, "5", "rejected", 0, 0}, {502, "", "rejected", 0, 0}, {504, "", "rejected", 0, 0},
	} {
		t.Run(fmt.Sprint(c.status, c.after), func(t *testing.T) {
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(c.status)
			})
			err := open(t, r.URL, nil).Deliver(t.Context(), delivery())
			kind := ""
			switch e := err.(type) { //nolint:errorlint // exactly these are promised
			case *handlers.BusyError:
				kind = "busy"
				if e.After < c.least || e.After > c.most {
					t.Errorf("patience of %s", e.After)
				}
			case *handlers.GoneError:
				kind = "gone"
			case *handlers.RejectedError:
				kind = "rejected"
				if e.Never {
					t.Error("never tried again")
				}
			}
			if kind != c.want || c.want == "" && err != nil {
				t.Errorf("error %T %v, want %q", err, err, c.want)
			}
		})
	}
}

// TestRedirectsAreNotFollowed: not a byte goes to where an answer points, and only its host
// is told.
func TestRedirectsAreNotFollowed(t *testing.T) {
	other := receive(t, ok)
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Location", other.URL+"/s3cret?t=0ken")
		w.WriteHeader(307)
	})
	err := open(t, r.URL, nil).Deliver(t.Context(), delivery())
	wantRejected(t, err, "307", other.Listener.Addr().String(), "not followed")
	if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "0ken") || len(other.requests()) > 0 {
		t.Errorf("the redirect was told or followed: %v", err)
	}
}

// TestReasonsAreShortAndPrintable: whatever a sink answers.
func TestReasonsAreShortAndPrintable(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		_, _ = w.Write([]byte("bad\x1b[31m\nthing\xff\x00" + strings.Repeat("é", 100_000)))
	})
	err := open(t, r.URL, nil).Deliver(t.Context(), delivery())
	wantRejected(t, err, "500 Internal Server Error: bad[31m thing?é")
	if n := len(err.Error()); n > 1024 {
		t.Errorf("the reason has %d bytes", n)
	}
}

// TestSlowBodies: of an answer that takes a delivery only the status counts; any other is
// waited for no longer than the timeout.
func TestSlowBodies(t *testing.T) {
	slow := make(chan struct{})
	defer close(slow)
	status := http.StatusOK
	r := receive(t, func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte("so far"))
		w.(http.Flusher).Flush()
		select {
		case <-slow:
		case <-q.Context().Done():
		}
	})
	s := open(t, r.URL, func(c *Config) { c.Timeout = time.Minute })
	began := time.Now()
	for range maxDrains + 3 {
		if err := s.Deliver(t.Context(), delivery()); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("bodies were waited for: %s", took)
	}
	status = http.StatusBadGateway
	hasty := open(t, r.URL, func(c *Config) { c.Timeout = 300 * time.Millisecond })
	wantRejected(t, hasty.Deliver(t.Context(), delivery()), "502", "so far")
}

func TestNoAnswer(t *testing.T) {
	t.Run("never", func(t *testing.T) {
		r := receive(t, func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
		s := open(t, r.URL+"/s3cret", func(c *Config) { c.Timeout = 200 * time.Millisecond })
		err := s.Deliver(t.Context(), delivery())
		wantRejected(t, err, "did not answer within 200ms")
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("tells the path: %v", err)
		}
	})
	t.Run("asked to stop", func(t *testing.T) {
		began := make(chan struct{})
		r := receive(t, func(_ http.ResponseWriter, q *http.Request) { close(began); <-q.Context().Done() })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-began; cancel() }()
		if err := open(t, r.URL, nil).Deliver(ctx, delivery()); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		r := receive(t, ok)
		r.Close()
		wantDown(t, open(t, r.URL, nil).Deliver(t.Context(), delivery()), "connection refused")
	})
	t.Run("reset", func(t *testing.T) {
		url := raw(t, "")
		wantDown(t, open(t, url, nil).Deliver(t.Context(), delivery()), "cannot be reached")
	})
	t.Run("garbage", func(t *testing.T) {
		url := raw(t, "SSH-2.0-OpenSSH_9.9\r\n")
		wantRejected(t, open(t, url, nil).Deliver(t.Context(), delivery()), "no HTTP")
	})
	t.Run("endless headers", func(t *testing.T) {
		url := raw(t, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 1<<20))
		wantRejected(t, open(t, url, nil).Deliver(t.Context(), delivery()), "no HTTP")
	})
	t.Run("no such name", func(t *testing.T) {
		s := open(t, "https://nobody.invalid/s3cret", nil)
		err := s.Deliver(t.Context(), delivery())
		wantDown(t, err, "nobody.invalid")
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("tells the path: %v", err)
		}
	})
}

// raw is the URL of a server that answers with text and closes.
func raw(t *testing.T, text string) string {
	t.Helper()
	return "http://" + sinktest.Listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1<<16))
		_, _ = c.Write([]byte(text))
	})
}

// TestClosedMeanwhile: a server that closes a kept connection just when it is used has not
// refused anything.
func TestClosedMeanwhile(t *testing.T) {
	s := open(t, "http://"+sinktest.Listen(t, func(c net.Conn) {
		buffer := make([]byte, 1<<16)
		_, _ = c.Read(buffer)
		_, _ = c.Write([]byte("HTTP/1.1 204 No Content\r\n\r\n"))
		_, _ = c.Read(buffer) // and closes on whoever uses it again
	}), nil)
	for i := range 4 {
		if err := s.Deliver(t.Context(), delivery()); err != nil {
			t.Fatalf("delivery %d: %v", i, err)
		}
		s.drains.running.Wait()
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	wantDown(t, open(t, server.URL, nil).Deliver(t.Context(), delivery()), "authority", "caFile")
	ca := file(t, pemOf(server))
	trusting := open(t, server.URL, func(c *Config) { c.CAFile = ca })
	if err := trusting.Deliver(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
	wantDown(t, open(t, server.URL, func(c *Config) { c.CAFile, c.ServerName = ca, "other.example" }).Deliver(t.Context(), delivery()), "other.example", "serverName")
	if err := open(t, server.URL, func(c *Config) { c.InsecureSkipVerify = true }).Deliver(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
	plain := receive(t, ok)
	https := strings.Replace(plain.URL, "http:", "https:", 1)
	wantDown(t, open(t, https, nil).Deliver(t.Context(), delivery()), "does not speak TLS")
}

// TestClientCertificate: a server that asks for one says so, and takes the one of certFile.
func TestClientCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := file(t, pemOf(server))
	err := open(t, server.URL, func(c *Config) { c.CAFile = ca }).Deliver(t.Context(), delivery())
	wantDown(t, err, "certFile")
	key, _ := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	keyFile := file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	with := open(t, server.URL, func(c *Config) { c.CAFile, c.CertFile, c.KeyFile = ca, ca, keyFile })
	if err := with.Deliver(t.Context(), delivery()); err != nil {
		t.Error(err)
	}
}
