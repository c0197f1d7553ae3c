package kafkasink

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func TestMistakes(t *testing.T) {
	brokers := []string{"a.example:9092"}
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no broker":      {Config{Topic: topic}, "brokers: is empty"},
		"no port":        {Config{Topic: topic, Brokers: []string{"a"}}, `brokers[0]: "a" is no host and port`},
		"port":           {Config{Topic: topic, Brokers: []string{"a:99999"}}, `brokers[0]: "a:99999" is no host and port`},
		"URL":            {Config{Topic: topic, Brokers: []string{"kafka://a:9092"}}, "brokers[0]: "},
		"password":       {Config{Topic: topic, Brokers: []string{"u:s3cret@a:9092"}}, "brokers[0]: has a user"},
		"no topic":       {Config{Brokers: brokers}, "topic: is missing"},
		"topic":          {Config{Brokers: brokers, Topic: "a b"}, `topic: "a b" is no name of a topic`},
		"mode":           {Config{Brokers: brokers, Topic: topic, Mode: "batch"}, `mode: "batch" is none`},
		"timeout":        {Config{Brokers: brokers, Topic: topic, Timeout: time.Hour}, "timeout: 1h0m0s is out of range"},
		"half":           {Config{Brokers: brokers, Topic: topic, UserFile: file(t, "s3cret")}, "passwordFile: is missing"},
		"other half":     {Config{Brokers: brokers, Topic: topic, PasswordFile: file(t, "s3cret")}, "userFile: is missing"},
		"no file":        {Config{Brokers: brokers, Topic: topic, UserFile: "/nowhere/x", PasswordFile: file(t, "s3cret")}, "userFile: file /nowhere/x cannot be read"},
		"mechanism":      {Config{Brokers: brokers, Topic: topic, Mechanism: "gssapi", UserFile: file(t, "a"), PasswordFile: file(t, "b")}, `mechanism: "gssapi" is none of plain, `},
		"nobody":         {Config{Brokers: brokers, Topic: topic, Mechanism: scram256}, "mechanism: needs userFile and passwordFile"},
		"in the clear":   {Config{Brokers: brokers, Topic: topic, Mechanism: plainMechanism, UserFile: file(t, "a"), PasswordFile: file(t, "b")}, "mechanism: plain sends the password as it is"},
		"tls without it": {Config{Brokers: brokers, Topic: topic, CAFile: file(t, "x")}, "tls: is not spoken"},
		"no certificate": {Config{Brokers: brokers, Topic: topic, TLS: true, CAFile: file(t, "s3cret")}, "caFile: file "},
		"half a pair":    {Config{Brokers: brokers, Topic: topic, TLS: true, CertFile: file(t, "x")}, "keyFile: is missing"},
		"too small":      {Config{Brokers: brokers, Topic: topic, MaxMessageBytes: 1}, "maxMessageBytes: 1 is out of range"},
		"no address":     {Config{Brokers: brokers, Topic: topic, AllowAddresses: []string{"10.0.0"}}, `allowAddresses[0]: "10.0.0" is no`},
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

func TestLengthOfTopics(t *testing.T) {
	for length, good := range map[int]bool{0: false, 1: true, 249: true, 250: false} {
		if err := CheckTopic(strings.Repeat("a", length)); (err == nil) != good {
			t.Errorf("%d letters: %v", length, err)
		}
	}
}
