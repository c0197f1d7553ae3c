package natssink

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// login is one way to log in; its files are read for each connection.
type login struct {
	field  string
	option func() (nats.Option, error)
}

// way is one to log in that a configuration names: its field and file, and what is made
// of them.
type way struct {
	field, path string
	option      func(*sinkconf.File) (nats.Option, error) // nil: with a password
}

// logins are all that c names.
func (c Config) logins() (ways []way) {
	for _, w := range []way{
		{"credsFile", c.CredsFile, credentials},
		{"tokenFile", c.TokenFile, token},
		{"nkeyFile", c.NKeyFile, nkey},
		{"userFile", c.UserFile, nil},
	} {
		if w.path != "" {
			ways = append(ways, w)
		}
	}
	return ways
}

// newLogin is the way that c names; nil if there is none, or its files are not what they
// should be.
func newLogin(m *sinkconf.Mistakes, c Config) *login {
	ways := c.logins()
	if len(ways) == 0 {
		return nil
	}
	before, w := len(*m), ways[0]
	f := m.File(w.field, w.path)
	if w.option == nil {
		w.option = password(m.File("passwordFile", c.PasswordFile))
	}
	if len(*m) > before {
		return nil
	}
	// Made once to see whether the file is what it should be.
	if _, err := w.option(f); err != nil {
		m.Note(w.field, err)
	}
	return &login{w.field, func() (nats.Option, error) { return w.option(f) }}
}

func token(f *sinkconf.File) (nats.Option, error) {
	text, err := f.Text()
	return nats.Token(text), err
}

func nkey(f *sinkconf.File) (nats.Option, error) {
	if _, err := f.Content(); err != nil {
		return nil, err
	}
	option, err := nats.NkeyOptionFromSeed(f.Path)
	if err != nil { // which may tell of the file's content
		return nil, fmt.Errorf("file %s has no seed of a user, which begins with SU", f.Path)
	}
	return option, nil
}

// credentials are what nsc and nats write: a JWT and a seed, each between lines of its own.
func credentials(f *sinkconf.File) (nats.Option, error) {
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"NATS USER JWT", "USER NKEY SEED"} {
		if !bytes.Contains(content, []byte("BEGIN "+part)) {
			return nil, fmt.Errorf("file %s has no line with BEGIN %s: it is not what nsc generate creds writes", f.Path, part)
		}
	}
	return nats.UserCredentialBytes(content), nil
}

func password(secret *sinkconf.File) func(*sinkconf.File) (nats.Option, error) {
	return func(f *sinkconf.File) (nats.Option, error) {
		user, err := f.Text()
		if err != nil || secret == nil {
			return nil, err
		}
		text, err := secret.Text()
		return nats.UserInfo(user, text), err
	}
}

// isDenied reports whether the server does not take who logs in.
func isDenied(err error) bool {
	for _, denied := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, denied) {
			return true
		}
	}
	return false
}

// advice says what to do about a login that the server does not take.
func (l *login) advice() string {
	if l == nil {
		return "wants to know who asks: give one of credsFile, tokenFile, nkeyFile, and userFile with passwordFile"
	}
	return fmt.Sprintf("does not take what is in %s: put what it takes into that file", l.field)
}
