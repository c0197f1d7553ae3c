package kafkasink

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/server/handlers/cloudevent"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

// Config is a topic of Kafka. Its zero values are useful but for Brokers and Topic.
type Config struct {
	// Brokers are asked first, as host:port; they tell of the others.
	Brokers []string
	// Topic must exist.
	Topic string
	// Mode is how a CloudEvent is put into a record; "": cloudevent.ModeStructured.
	Mode cloudevent.Mode
	// Mechanism is how UserFile and PasswordFile are used to log in, one of Mechanisms; "":
	// SCRAM-SHA-512 if they are given.
	Mechanism string
	// UserFile and PasswordFile have what they say.
	UserFile, PasswordFile string
	// TLS is spoken; without it only private addresses are dialled.
	TLS bool
	// CAFile has the authorities that the brokers' certificates are checked by; "": the system's.
	CAFile string
	// CertFile and KeyFile are shown to the brokers.
	CertFile, KeyFile string
	// MaxMessageBytes is the largest record, before it is compressed, as max.message.bytes of
	// the topic says; 0: DefaultMaxMessageBytes.
	MaxMessageBytes int
	// AllowAddresses are addresses and networks that are dialled though they are public and
	// there is no TLS, or though they are link-local or reserved.
	AllowAddresses []string
	// Timeout of one delivery; 0: 10 s.
	Timeout time.Duration
}

const (
	// DefaultMaxMessageBytes is what brokers take if they are not told otherwise.
	DefaultMaxMessageBytes = 1_000_000
	// MinMessageBytes and LargestMessageBytes bound MaxMessageBytes.
	MinMessageBytes     = 1 << 10
	LargestMessageBytes = 64 << 20
)

// The mechanisms of SASL.
const (
	plainMechanism = "plain"
	scram256       = "scram-sha-256"
	scram512       = "scram-sha-512"
)

// Mechanisms are those of SASL that are spoken.
var Mechanisms = []string{plainMechanism, scram256, scram512}

func (c Config) tls() sinkconf.TLSConfig {
	return sinkconf.TLSConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile}
}

// CheckBroker says what is wrong with the address of a broker.
func CheckBroker(text string) error {
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case strings.Contains(text, "@"):
		return errors.New("has a user or a password, which whoever reads this file could read: put them into files and name those in userFile and passwordFile")
	case err != nil || host == "" || strings.ContainsAny(host, "/ ") || portErr != nil || n == 0:
		return fmt.Errorf("%q is no host and port: write one such as kafka.example.com:9092", sinkconf.Printable(text))
	}
	return nil
}

// maxTopic is how long a name may be. Were it in the expression, that would be compiled at
// each start into as many steps.
const maxTopic = 249

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// CheckTopic says what is wrong with the name of a topic.
func CheckTopic(text string) error {
	if len(text) > maxTopic || !topicName.MatchString(text) || text == "." || text == ".." {
		return fmt.Errorf("%q is no name of a topic: letters, digits, dots, - and _, at most 249 of them, such as shop-changes", sinkconf.Printable(text))
	}
	return nil
}

// check notes what is wrong with each field, but for files.
func (c Config) check(m *sinkconf.Mistakes) {
	if len(c.Brokers) == 0 {
		m.Add("brokers", "is empty: name at least one, such as kafka.example.com:9092")
	}
	for i, text := range c.Brokers {
		m.Note(fmt.Sprintf("brokers[%d]", i), CheckBroker(text))
	}
	if c.Topic == "" {
		m.Add("topic", "is missing: write one such as shop-changes")
	} else {
		m.Note("topic", CheckTopic(c.Topic))
	}
	m.Note("mode", c.Mode.Check())
	if c.Mechanism != "" && !slices.Contains(Mechanisms, c.Mechanism) {
		m.Add("mechanism", "%q is none of %s", sinkconf.Printable(c.Mechanism), strings.Join(Mechanisms, ", "))
	}
	if n := c.MaxMessageBytes; n != 0 && (n < MinMessageBytes || n > LargestMessageBytes) {
		m.Add("maxMessageBytes", "%d is out of range: from %d to %d", n, MinMessageBytes, LargestMessageBytes)
	}
}

// CheckWhole notes what is wrong with fields that are right, each by itself.
func (c Config) CheckWhole(m *sinkconf.Mistakes) {
	m.Both("userFile", c.UserFile, "passwordFile", c.PasswordFile)
	switch {
	case c.Mechanism != "" && c.UserFile == "" && c.PasswordFile == "":
		m.Add("mechanism", "needs userFile and passwordFile: give all, or none")
	case c.Mechanism == plainMechanism && !c.TLS:
		m.Add("mechanism", "plain sends the password as it is, and there is no TLS: write tls: {}, or mechanism: %s", scram512)
	}
	if c.tls().Given() && !c.TLS {
		m.Add("tls", "is not spoken, and caFile, certFile and keyFile are about it: speak TLS, or leave them out")
	}
}
