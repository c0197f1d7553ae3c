package natssink

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/informerd/informerd/server/handlers/cloudevent"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Config is a subject of JetStream. Its zero values are useful but for Servers.
type Config struct {
	// Servers are URLs, nats:// or tls://, all of the one or the other; any that answers is
	// used. Without TLS only private addresses are dialled.
	Servers []string
	// Subject may have names in braces, such as {namespace}; "": DefaultSubject.
	Subject string
	// Stream is the one that must store the messages; "": any that has the subject.
	Stream string
	// Mode is how a CloudEvent is put into a message; "": cloudevent.ModeStructured.
	Mode cloudevent.Mode
	// At most one way to log in: CredsFile has a JWT and a seed, TokenFile a token, NKeyFile a
	// seed, UserFile and PasswordFile what they say.
	CredsFile, TokenFile, NKeyFile, UserFile, PasswordFile string
	// TLS: something about TLS is given, were it nothing but that. URLs say whether it is spoken.
	TLS bool
	// CAFile has the authorities that the servers' certificates are checked by; "": the system's.
	CAFile string
	// CertFile and KeyFile are shown to the servers.
	CertFile, KeyFile string
	// AllowAddresses are addresses and networks that are dialled though they are public and
	// there is no TLS, or though they are link-local or reserved.
	AllowAddresses []string
	// Timeout of one delivery, making a connection included; 0: 10 s.
	Timeout time.Duration
}

func (c Config) tls() sinkconf.TLSConfig {
	return sinkconf.TLSConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
}

const exampleServer = "write one such as tls://nats.example.com:4222"

// CheckServer says what is wrong with the URL of a server, without what is secret in it.
func CheckServer(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("is no URL: %s", exampleServer)
	case u.User != nil:
		return errors.New("has a user, a password or a token, which whoever reads this file could read: put them into files and name those in userFile and passwordFile, or in tokenFile")
	case u.Scheme != "nats" && u.Scheme != "tls":
		return fmt.Errorf("has the scheme %q: only nats and tls are spoken, %s", u.Scheme, exampleServer)
	case u.Hostname() == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("is no host and port: %s", exampleServer)
	}
	return nil
}

// isSecure reports whether a URL that CheckServer accepts wants TLS.
func isSecure(server string) bool { return strings.HasPrefix(server, "tls:") }

// maxStream is how many characters a name may have. Were it in the expression, that would be
// compiled at each start into as many steps.
const maxStream = 255

var streamName = regexp.MustCompile(`^[^\s.*>/\\]+$`)

// CheckStream says what is wrong with the name of a stream.
func CheckStream(text string) error {
	if utf8.RuneCountInString(text) <= maxStream && streamName.MatchString(text) {
		return nil
	}
	return fmt.Errorf("%q is no name of a stream: no spaces, dots, *, > and slashes, such as CHANGES", sinkconf.Printable(text))
}

// check notes what is wrong with each field, but for files.
func (c Config) check(m *sinkconf.Mistakes) {
	if len(c.Servers) == 0 {
		m.Add("servers", "is empty: name at least one, such as tls://nats.example.com:4222")
	}
	for i, text := range c.Servers {
		m.Note(fmt.Sprintf("servers[%d]", i), CheckServer(text))
	}
	if c.Subject != "" {
		m.Note("subject", CheckSubject(c.Subject))
	}
	if c.Stream != "" {
		m.Note("stream", CheckStream(c.Stream))
	}
	m.Note("mode", c.Mode.Check())
}

// CheckWhole notes what is wrong with fields that are right, each by itself.
func (c Config) CheckWhole(m *sinkconf.Mistakes) {
	for _, text := range c.Servers {
		if first := c.Servers[0]; isSecure(text) != isSecure(first) {
			m.Add("servers", "of %s and %s one speaks TLS and the other does not: write tls:// for all, or nats:// for all", first, text)
			break
		}
	}
	if !c.secure() && (c.TLS || c.tls().Given()) {
		m.Add("tls", "has no meaning for nats://: write tls:// in servers instead, or leave it out")
	}
	m.Both("userFile", c.UserFile, "passwordFile", c.PasswordFile)
	if ways := c.logins(); len(ways) > 1 {
		m.Add(ways[1].field, "is a second way to log in beside %s: give one of credsFile, tokenFile, nkeyFile, and userFile with passwordFile", ways[0].field)
	}
}

// secure reports whether TLS is spoken.
func (c Config) secure() bool { return len(c.Servers) > 0 && isSecure(c.Servers[0]) }
