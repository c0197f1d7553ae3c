package kafkasink

import (
	"context"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// login is how informerd says who it is; its files are read for each connection.
type login struct{ user, password *sinkconf.File }

// newLogin is the mechanism that c names; nil if there is none.
func newLogin(m *sinkconf.Mistakes, c Config) sasl.Mechanism {
	l := login{m.File("userFile", c.UserFile), m.File("passwordFile", c.PasswordFile)}
	if l.user == nil || l.password == nil {
		return nil
	}
	switch c.Mechanism {
	case plainMechanism:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			user, password, err := l.read()
			return plain.Auth{User: user, Pass: password}, err
		})
	case scram256:
		return scram.Sha256(l.scram)
	}
	return scram.Sha512(l.scram)
}

func (l login) scram(context.Context) (scram.Auth, error) {
	user, password, err := l.read()
	return scram.Auth{User: user, Pass: password}, err
}

func (l login) read() (user, password string, err error) {
	if user, err = l.user.Text(); err != nil {
		return "", "", err
	}
	password, err = l.password.Text()
	return user, password, err
}
