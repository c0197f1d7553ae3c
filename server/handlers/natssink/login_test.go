package natssink

import (
	"net/http/httptest"
	"testing"

	"crypto/tls"
	"crypto/x509"
	"encoding/pem"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func TestPassword(t *testing.T) {
	b := serve(t, func(o *server.Options) { o.Username, o.Password = "jane", "s3cret" })
	b.stream(all(), nats.UserInfo("jane", "s3cret"))
	wantDown(t, open(t, b.ClientURL(), nil).Deliver(t.Context(), delivery()), "wants to know who asks", "userFile")
	secret := file(t, "s3cret-but-wrong\n")
	s := open(t, b.ClientURL(), func(c *Config) { c.UserFile, c.PasswordFile = file(t, "jane\n"), secret })
	wantDown(t, s.Deliver(t.Context(), delivery()), "does not take what is in userFile")
	write(t, secret, "s3cret\n") // files are read again for each connection
	retry(t, s, delivery())
}

func TestToken(t *testing.T) {
	b := serve(t, func(o *server.Options) { o.Authorization = "s3cret" })
	b.stream(all(), nats.Token("s3cret"))
	deliver(t, open(t, b.ClientURL(), func(c *Config) { c.TokenFile = file(t, "s3cret\n") }), delivery())
	wrong := open(t, b.ClientURL(), func(c *Config) { c.TokenFile = file(t, "s3cret2") })
	wantDown(t, wrong.Deliver(t.Context(), delivery()), "tokenFile")
}

// user makes a key, and returns its public part and its seed.
func user(t *testing.T) (public string, seed []byte) {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, _ = key.PublicKey()
	seed, _ = key.Seed()
	return public, seed
}

func TestNKey(t *testing.T) {
	public, seed := user(t)
	_, other := user(t)
	b := serve(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	path := file(t, string(seed)+"\n")
	option, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		t.Fatal(err)
	}
	b.stream(all(), option)
	deliver(t, open(t, b.ClientURL(), func(c *Config) { c.NKeyFile = path }), delivery())
	wrong := open(t, b.ClientURL(), func(c *Config) { c.NKeyFile = file(t, string(other)) })
	wantDown(t, wrong.Deliver(t.Context(), delivery()), "nkeyFile")
}

// TestCredentials: a file as nsc writes it, of a server that trusts an operator.
func TestCredentials(t *testing.T) {
	operator, _ := nkeys.CreateOperator()
	trusted, _ := operator.PublicKey()
	account := func(jetstream bool) (key nkeys.KeyPair, public, text string) {
		key, _ = nkeys.CreateAccount()
		public, _ = key.PublicKey()
		claims := jwt.NewAccountClaims(public)
		if jetstream {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		}
		text, err := claims.Encode(operator)
		if err != nil {
			t.Fatal(err)
		}
		return key, public, text
	}
	key, public, text := account(true)
	_, system, systemText := account(false)
	resolver := &server.MemAccResolver{}
	_ = resolver.Store(public, text)
	_ = resolver.Store(system, systemText)
	b := serve(t, func(o *server.Options) {
		o.TrustedKeys, o.AccountResolver, o.SystemAccount = []string{trusted}, resolver, system
	})
	credentials := func(key nkeys.KeyPair) string {
		public, seed := user(t)
		token, err := jwt.NewUserClaims(public).Encode(key)
		if err != nil {
			t.Fatal(err)
		}
		content, err := jwt.FormatUserConfig(token, seed)
		if err != nil {
			t.Fatal(err)
		}
		return file(t, string(content))
	}
	path := credentials(key)
	b.stream(all(), nats.UserCredentials(path))
	deliver(t, open(t, b.ClientURL(), func(c *Config) { c.CredsFile = path }), delivery())
	stranger, _ := nkeys.CreateAccount()
	wrong := open(t, b.ClientURL(), func(c *Config) { c.CredsFile = credentials(stranger) })
	wantDown(t, wrong.Deliver(t.Context(), delivery()), "credsFile")
}

// TestPermissions: what the server forbids is said at once, though it answers nothing.
func TestPermissions(t *testing.T) {
	allow := func(subjects ...string) *server.SubjectPermission {
		return &server.SubjectPermission{Allow: subjects}
	}
	permissions := &server.Permissions{Publish: allow("informerd.*.*.*.other.*"), Subscribe: allow("_INBOX.>")}
	account := server.NewAccount("A")
	b := serve(t, func(o *server.Options) {
		o.Accounts = []*server.Account{account}
		o.Users = []*server.User{
			{Username: "jane", Password: "s3cret", Account: account, Permissions: permissions},
			{Username: "deaf", Password: "s3cret", Account: account, Permissions: &server.Permissions{Subscribe: allow("x")}},
			{Username: "root", Password: "s3cret", Account: account},
		}
	})
	registered, err := b.LookupAccount("A")
	if err != nil {
		t.Fatal(err)
	}
	if err := registered.EnableJetStream(nil, nil); err != nil {
		t.Fatal(err)
	}
	b.stream(all(), nats.UserInfo("root", "s3cret"))
	as := func(user string) func(*Config) {
		return func(c *Config) { c.UserFile, c.PasswordFile = file(t, user), file(t, "s3cret") }
	}
	s := open(t, b.ClientURL(), as("jane"))
	wantRejected(t, s.Deliver(t.Context(), delivery()), false, "does not allow to publish to informerd.h.main")
	d := delivery()
	d.Namespace = "other"
	deliver(t, s, d)
	same := open(t, b.ClientURL(), func(c *Config) { as("jane")(c); c.Subject = "informerd.x" })
	wantDown(t, same.Deliver(t.Context(), delivery()), "does not allow to publish to informerd.x")
	deaf := open(t, b.ClientURL(), as("deaf"))
	for range 2 {
		wantDown(t, deaf.Deliver(t.Context(), delivery()), "acknowledgements", "_INBOX.>")
	}
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
	b := serve(t, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
		o.TLS, o.TLSTimeout = true, 60
	})
	b.stream(all(), nats.RootCAs(certFile), nats.ClientCert(certFile, keyFile))
	url := "tls://" + b.Addr().String()
	wantDown(t, open(t, url, nil).Deliver(t.Context(), delivery()), "authority", "caFile")
	wantDown(t, open(t, url, func(c *Config) { c.CAFile = certFile }).Deliver(t.Context(), delivery()), "certFile")
	s := open(t, url, func(c *Config) { c.CAFile, c.CertFile, c.KeyFile = certFile, certFile, keyFile })
	deliver(t, s, delivery())
	plain := serve(t, nil)
	wantDown(t, open(t, "tls://"+plain.Addr().String(), nil).Deliver(t.Context(), delivery()), "does not speak TLS")
}
