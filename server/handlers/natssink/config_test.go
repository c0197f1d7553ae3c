package natssink

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func TestMistakes(t *testing.T) {
	const url = "nats://a.example"
	servers := []string{url}
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no server":      {Config{}, "servers: is empty"},
		"scheme":         {Config{Servers: []string{"http://a"}}, `servers[0]: has the scheme "http"`},
		"password":       {Config{Servers: []string{url, "nats://u:s3cret@a"}}, "servers[1]: has a user"},
		"token":          {Config{Servers: []string{"nats://s3cret@a"}}, "servers[0]: has a user"},
		"path":           {Config{Servers: []string{"nats://a/s3cret"}}, "servers[0]: is no host and port"},
		"no URL":         {Config{Servers: []string{"nats://a\x00s3cret"}}, "servers[0]: is no URL"},
		"mixed":          {Config{Servers: []string{url, "tls://b"}}, "servers: of nats://a.example and tls://b one speaks TLS and the other does not"},
		"subject":        {Config{Servers: servers, Subject: "a.*"}, `subject: "a.*" is no subject`},
		"empty token":    {Config{Servers: servers, Subject: "a..{name}"}, `subject: "a..{name}" is no subject`},
		"space":          {Config{Servers: servers, Subject: "a b"}, `subject: "a b" is no subject`},
		"API":            {Config{Servers: servers, Subject: "$JS.API.STREAM.DELETE.{name}"}, "is no subject"},
		"name":           {Config{Servers: servers, Subject: "a.{uid}"}, "subject: {uid is none of {cluster}, {handler}"},
		"open brace":     {Config{Servers: servers, Subject: "a.{name"}, "subject: {name is none of"},
		"closed brace":   {Config{Servers: servers, Subject: "a.name}"}, "is no subject"},
		"stream":         {Config{Servers: servers, Stream: "a.b"}, `stream: "a.b" is no name of a stream`},
		"mode":           {Config{Servers: servers, Mode: "batch"}, `mode: "batch" is none: structured or binary`},
		"timeout":        {Config{Servers: servers, Timeout: time.Hour}, "timeout: 1h0m0s is out of range"},
		"two ways":       {Config{Servers: servers, TokenFile: file(t, "s3cret"), NKeyFile: file(t, "s3cret")}, "nkeyFile: is a second way to log in beside tokenFile"},
		"half":           {Config{Servers: servers, UserFile: file(t, "s3cret")}, "passwordFile: is missing"},
		"other half":     {Config{Servers: servers, PasswordFile: file(t, "s3cret")}, "userFile: is missing"},
		"no file":        {Config{Servers: servers, TokenFile: "/nowhere/x"}, "tokenFile: file /nowhere/x cannot be read"},
		"no seed":        {Config{Servers: servers, NKeyFile: file(t, "SUs3cret")}, "nkeyFile: file "},
		"no credentials": {Config{Servers: servers, CredsFile: file(t, "s3cret")}, "credsFile: file "},
		"tls without it": {Config{Servers: servers, CAFile: file(t, "x")}, "tls: has no meaning for nats://"},
		"no certificate": {Config{Servers: []string{"tls://a"}, CAFile: file(t, "s3cret")}, "caFile: file "},
		"half a pair":    {Config{Servers: []string{"tls://a"}, CertFile: file(t, "x")}, "keyFile: is missing"},
		"no address":     {Config{Servers: servers, AllowAddresses: []string{"10.0.0"}}, `allowAddresses[0]: "10.0.0" is no`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(c.config)
			if _, is := errors.AsType[*sinkconf.Mistake](err); !is || !strings.Contains(err.Error(), c.want) || s != nil {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("tells a secret: %v", err)
			}
		})
	}
}

// FuzzSubjects: whatever names are, a subject has as many tokens as its template, and none
// that stands for others.
func FuzzSubjects(f *testing.F) {
	f.Add("shop", "web")
	f.Add("", "a.b.*.>")
	f.Add("$JS", "%2E é\x00\r\n")
	s, err := parseSubject(DefaultSubject)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		d := delivery()
		d.Namespace, d.Name = namespace, name
		got := s.of(d)
		if !publishable(got) || strings.Count(got, ".") != strings.Count(DefaultSubject, ".") {
			t.Errorf("subject %q of %q and %q", got, namespace, name)
		}
		other := delivery()
		other.Namespace, other.Name = namespace, name+"x"
		if name != "" && s.of(other) == got {
			t.Errorf("subject %q is of two", got)
		}
	})
}

func TestLengthOfStreams(t *testing.T) {
	for length, good := range map[int]bool{0: false, 1: true, 255: true, 256: false} {
		if err := CheckStream(strings.Repeat("é", length)); (err == nil) != good {
			t.Errorf("%d letters: %v", length, err)
		}
	}
}
