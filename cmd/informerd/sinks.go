package main

import (
	"fmt"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/kafkasink"
	"github.com/informerd/informerd/server/handlers/natssink"
	"github.com/informerd/informerd/server/handlers/webhook"
)

// newSink makes what a handler delivers to; nil for one that is claimed.
func newSink(h config.Handler) (handlers.Sink, error) {
	switch {
	case h.SinkKind == "":
		return nil, nil
	case h.Webhook != nil:
		return newWebhook(h)
	case h.NATS != nil:
		return sinkOf(natssink.New(*h.NATS))
	case h.Kafka != nil:
		return sinkOf(kafkasink.New(*h.Kafka))
	}
	return nil, fmt.Errorf("%s is no sink that this program has", h.SinkKind)
}

func newWebhook(h config.Handler) (handlers.Sink, error) {
	w := h.Webhook
	return sinkOf(webhook.New(webhook.Config{
		URL: w.URL, Mode: w.Mode, SecretFiles: w.SecretFiles, HeaderFiles: w.HeaderFiles, Timeout: w.Timeout,
		CAFile: w.CAFile, CertFile: w.CertFile, KeyFile: w.KeyFile, ServerName: w.ServerName,
		InsecureSkipVerify: w.InsecureSkipVerify, AllowPrivate: w.AllowPrivate, Concurrency: h.Concurrency,
	}))
}

// sinkOf is s, or nothing: a nil *Sink would not be a nil Sink.
func sinkOf[S handlers.Sink](s S, err error) (handlers.Sink, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
