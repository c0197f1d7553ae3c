package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/server/handlers/cloudevent"
	"github.com/informerd/informerd/server/handlers/kafkasink"
	"github.com/informerd/informerd/server/handlers/natssink"
	"github.com/informerd/informerd/server/handlers/sinkconf"
)

func (h *handlerReader) nats(n *yaml.Node, path string) *natssink.Config {
	c := &natssink.Config{Subject: natssink.DefaultSubject, Mode: cloudevent.ModeStructured, Timeout: defaultSinkTimeout}
	given := map[string]*yaml.Node{}
	h.mapping(n, path, noting(given, fieldsOf{
		"servers":        func(n *yaml.Node, path string) { c.Servers = h.texts(n, path, natssink.CheckServer) },
		"subject":        func(n *yaml.Node, path string) { c.Subject, _ = h.checked(n, path, natssink.CheckSubject) },
		"stream":         func(n *yaml.Node, path string) { c.Stream, _ = h.checked(n, path, natssink.CheckStream) },
		"mode":           h.mode(&c.Mode),
		"credsFile":      h.secretFile(&c.CredsFile),
		"tokenFile":      h.secretFile(&c.TokenFile),
		"nkeyFile":       h.secretFile(&c.NKeyFile),
		"userFile":       h.secretFile(&c.UserFile),
		"passwordFile":   h.secretFile(&c.PasswordFile),
		"allowAddresses": func(n *yaml.Node, path string) { c.AllowAddresses = h.texts(n, path, checkAddress) },
		"timeout":        h.sinkTimeout(&c.Timeout),
		"tls": func(n *yaml.Node, path string) {
			c.TLS = true
			h.clientTLS(n, path, &c.CAFile, &c.CertFile, &c.KeyFile, nil)
		},
	}))
	h.need(n, path, "servers", `["tls://nats.example.com:4222"]`)
	var m sinkconf.Mistakes
	c.CheckWhole(&m)
	h.mistakes(n, path, given, m)
	return c
}

func (h *handlerReader) kafka(n *yaml.Node, path string) *kafkasink.Config {
	c := &kafkasink.Config{Mode: cloudevent.ModeStructured, Timeout: defaultSinkTimeout, MaxMessageBytes: kafkasink.DefaultMaxMessageBytes}
	given := map[string]*yaml.Node{}
	h.mapping(n, path, noting(given, fieldsOf{
		"brokers":      func(n *yaml.Node, path string) { c.Brokers = h.texts(n, path, kafkasink.CheckBroker) },
		"topic":        func(n *yaml.Node, path string) { c.Topic, _ = h.checked(n, path, kafkasink.CheckTopic) },
		"mode":         h.mode(&c.Mode),
		"mechanism":    func(n *yaml.Node, path string) { c.Mechanism = h.choice(n, path, "", kafkasink.Mechanisms...) },
		"userFile":     h.secretFile(&c.UserFile),
		"passwordFile": h.secretFile(&c.PasswordFile),
		"maxMessageBytes": func(n *yaml.Node, path string) {
			c.MaxMessageBytes = h.integer(n, path, kafkasink.MinMessageBytes, kafkasink.LargestMessageBytes, c.MaxMessageBytes)
		},
		"allowAddresses": func(n *yaml.Node, path string) { c.AllowAddresses = h.texts(n, path, checkAddress) },
		"timeout":        h.sinkTimeout(&c.Timeout),
		"tls": func(n *yaml.Node, path string) {
			c.TLS = true
			h.clientTLS(n, path, &c.CAFile, &c.CertFile, &c.KeyFile, nil)
		},
	}))
	h.need(n, path, "brokers", `["kafka.example.com:9092"]`)
	h.need(n, path, "topic", "shop-changes")
	var m sinkconf.Mistakes
	c.CheckWhole(&m)
	h.mistakes(n, path, given, m)
	return c
}

func (h *handlerReader) mode(to *cloudevent.Mode) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		*to = cloudevent.Mode(h.choice(n, path, string(*to), string(cloudevent.ModeStructured), string(cloudevent.ModeBinary)))
	}
}

func (h *handlerReader) secretFile(to *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, path string) {
		name, _ := h.checked(n, path, notEmpty)
		*to = expandHome(name)
	}
}

// mistakes reports what a sink says is wrong with its fields, each where it is given.
func (h *handlerReader) mistakes(n *yaml.Node, path string, given map[string]*yaml.Node, m sinkconf.Mistakes) {
	for _, err := range m {
		mistake, is := errors.AsType[*sinkconf.Mistake](err)
		if !is {
			h.errorf(n, path, "%v", err)
			continue
		}
		h.errorf(cmp.Or(given[mistake.Field], n), join(path, mistake.Field), "%s", mistake.Problem)
	}
}

// checkAddress accepts addresses and networks.
func checkAddress(text string) error {
	if _, err := netip.ParsePrefix(text); err == nil {
		return nil
	}
	if _, err := netip.ParseAddr(text); err == nil {
		return nil
	}
	return fmt.Errorf("bad value %q: name an address or a network, such as 203.0.113.7 or 203.0.113.0/24", text)
}
