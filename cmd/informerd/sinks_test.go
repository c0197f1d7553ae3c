package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// TestSinks: every kind of sink is made of its configuration, without whom it delivers to, and
// one that cannot be made is none.
func TestSinks(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		", webhook: {url: 'https://a.example'}": "*webhook.Sink",
		", nats: {servers: ['nats://127.0.0.1:1']}":                                             "*natssink.Sink",
		", nats: {servers: ['tls://a'], credsFile: /nowhere/x}":                                 "credsFile: file /nowhere/x cannot be read",
		", nats: {servers: ['tls://a'], tls: {caFile: /nowhere/x}}":                             "caFile: file /nowhere/x cannot be read",
		", kafka: {brokers: ['127.0.0.1:1'], topic: a}":                                         "*kafkasink.Sink",
		", kafka: {brokers: ['a:1'], topic: a, userFile: /nowhere/x, passwordFile: /nowhere/y}": "userFile: file /nowhere/x cannot be read",
	} {
		c, err := config.Parse("f", []byte("handlers: [{name: a, resources: [pods], as: informerd"+text+"}]"))
		if err != nil {
			t.Fatal(err)
		}
		sink, err := newSink(c.Handlers[0])
		switch {
		case err != nil && (sink != nil || !strings.Contains(err.Error(), want) || strings.HasPrefix(want, "*")):
			t.Errorf("%s: %v, %v", text, sink, err)
		case err == nil && sink == nil && want != "", sink != nil && fmt.Sprintf("%T", sink) != want:
			t.Errorf("%s: %T", text, sink)
		}
		if sink != nil {
			if err := sink.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
