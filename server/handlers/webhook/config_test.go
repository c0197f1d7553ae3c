package webhook

import (
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestMistakes(t *testing.T) {
	const url = "https://a.example/s3cret"
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no url":           {Config{}, "url: is missing"},
		"no such scheme":   {Config{URL: "ftp://a/s3cret"}, `url: has the scheme "ftp"`},
		"unreadable":       {Config{URL: "https://a\x00s3cret"}, "url: is no URL"},
		"password":         {Config{URL: "https://u:s3cret@a"}, "url: has a user"},
		"no host":          {Config{URL: "https:///s3cret"}, "url: has no host"},
		"fragment":         {Config{URL: "https://a/#s3cret"}, "url: has a fragment"},
		"port":             {Config{URL: "https://a:99999/"}, `url: has the port "99999"`},
		"plain":            {Config{URL: "http://a/"}, "url: is plain http"},
		"private":          {Config{URL: "https://10.1.2.3/"}, "url: address 10.1.2.3 is a private one"},
		"metadata":         {Config{URL: "https://[::ffff:169.254.169.254]/"}, "url: address 169.254.169.254 is link-local"},
		"plain and public": {Config{URL: "http://8.8.8.8/", AllowPrivate: []string{"a"}}, "url: address 8.8.8.8 is a public one"},
		"mode":             {Config{URL: url, Mode: "batch"}, `mode: "batch" is none: structured or binary`},
		"timeout":          {Config{URL: url, Timeout: time.Hour}, "timeout: 1h0m0s is out of range"},
		"concurrency":      {Config{URL: url, Concurrency: -1}, "concurrency: -1"},
		"no secret":        {Config{URL: url, SecretFiles: []string{"/nowhere/x"}}, "secretFiles[0]: file /nowhere/x cannot be read"},
		"short secret":     {Config{URL: url, SecretFiles: []string{file(t, "s3cret")}}, "secretFiles[0]: file "},
		"bad secret":       {Config{URL: url, SecretFiles: []string{file(t, "whsec_s3cret!")}}, "no base64 after whsec_"},
		"host header":      {Config{URL: url, HeaderFiles: map[string]string{"hOst": "x"}}, "headerFiles.hOst: cannot be set"},
		"content header":   {Config{URL: url, HeaderFiles: map[string]string{"Content-Type": "x"}}, "headerFiles.Content-Type: cannot be set"},
		"ce header":        {Config{URL: url, HeaderFiles: map[string]string{"ce-id": "x"}}, "headerFiles.ce-id: cannot be set"},
		"signature":        {Config{URL: url, HeaderFiles: map[string]string{"webhook-signature": "x"}}, "headerFiles.webhook-signature: cannot be set"},
		"no header":        {Config{URL: url, HeaderFiles: map[string]string{"a b": "x"}}, "headerFiles.a b: is no name of a header"},
		"two lines":        {Config{URL: url, HeaderFiles: map[string]string{"A": file(t, "s3cret\r\nHost: b")}}, "headerFiles.A: file "},
		"allowed":          {Config{URL: url, AllowPrivate: []string{"10.0.0"}}, `allowPrivate[0]: "10.0.0" is no host name`},
		"half a pair":      {Config{URL: url, CertFile: file(t, "x")}, "keyFile: is missing"},
		"no certificate":   {Config{URL: url, CAFile: file(t, "x")}, "caFile: file "},
		"both":             {Config{URL: url, CAFile: file(t, "x"), InsecureSkipVerify: true}, "insecureSkipVerify: no certificate"},
		"tls without it":   {Config{URL: "http://a/", AllowPrivate: []string{"a"}, ServerName: "b"}, "url: is plain http, and caFile"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.config)
			if _, is := errors.AsType[*sinkconf.Mistake](err); !is || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("tells a secret: %v", err)
			}
		})
	}
}
