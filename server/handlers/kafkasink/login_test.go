package kafkasink

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestPassword(t *testing.T) {
	pair, certFile, _ := certificate(t)
	for mechanism, method := range map[string]string{plainMechanism: "PLAIN", scram256: "SCRAM-SHA-256", scram512: "SCRAM-SHA-512", "": "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			c := serve(t, kfake.EnableSASL(), kfake.Superuser(method, "jane", "s3cret"), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}))
			secret := file(t, "s3cret-but-wrong\n")
			s := open(t, c, func(c *Config) {
				c.TLS, c.CAFile, c.Mechanism = true, certFile, mechanism
				c.UserFile, c.PasswordFile = file(t, "jane\n"), secret
			})
			wantDown(t, s.Deliver(t.Context(), delivery()), "passwordFile")
			write(t, secret, "s3cret\n") // files are read again for each connection
			retry(t, s, delivery())
			none := open(t, c, func(c *Config) { c.TLS, c.CAFile = true, certFile })
			wantDown(t, none.Deliver(t.Context(), delivery()), "SASL")
		})
	}
	c := serve(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "jane", "s3cret"))
	other := open(t, c, func(c *Config) {
		c.UserFile, c.PasswordFile, c.Mechanism = file(t, "jane"), file(t, "s3cret"), scram256
	})
	deliver(t, other, delivery())
	// kfake hangs up on who is not known; brokers say so.
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		answer := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		answer.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return answer, nil, true
	})
	stranger := open(t, c, func(c *Config) {
		c.UserFile, c.PasswordFile, c.Mechanism = file(t, "jane"), file(t, "s3cret"), scram256
	})
	wantDown(t, stranger.Deliver(t.Context(), delivery()), "passwordFile")
}

// TestPermissions: who may not write to the topic is told so.
func TestPermissions(t *testing.T) {
	allow := func(topic string, operation kmsg.ACLOperation) kfake.ACL {
		return kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: topic, Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: operation, Allow: true}
	}
	c := serve(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.User("SCRAM-SHA-512", "reader", "s3cret", allow(topic, kmsg.ACLOperationDescribe), allow(topic, kmsg.ACLOperationRead)),
		kfake.User("SCRAM-SHA-512", "writer", "s3cret", allow(topic, kmsg.ACLOperationWrite)))
	as := func(user string) func(*Config) {
		return func(c *Config) { c.UserFile, c.PasswordFile = file(t, user), file(t, "s3cret") }
	}
	wantDown(t, open(t, c, as("reader")).Deliver(t.Context(), delivery()), "allow")
	deliver(t, open(t, c, as("writer")), delivery())
}

// certificate is one of this machine, its own authority, and its key.
func certificate(t *testing.T) (pair tls.Certificate, certFile, keyFile string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	pair = s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pair, file(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}))),
		file(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
}

func TestTLS(t *testing.T) {
	pair, certFile, keyFile := certificate(t)
	c := serve(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}))
	wantDown(t, open(t, c, func(c *Config) { c.TLS = true }).Deliver(t.Context(), delivery()), "authority", "caFile")
	wantDown(t, open(t, c, func(c *Config) { c.TLS, c.CAFile = true, certFile }).Deliver(t.Context(), delivery()), "certFile")
	deliver(t, open(t, c, func(c *Config) {
		c.TLS, c.CAFile, c.CertFile, c.KeyFile = true, certFile, certFile, keyFile
	}), delivery())
	wantDown(t, open(t, c, nil).Deliver(t.Context(), delivery()), "TLS")
	plain := serve(t)
	wantDown(t, open(t, plain, func(c *Config) { c.TLS, c.Timeout = true, time.Second }).Deliver(t.Context(), delivery()), "TLS")
}
