package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/informerd/informerd/server/handlers"
	"github.com/informerd/informerd/server/handlers/kafkasink"
	"github.com/informerd/informerd/server/handlers/natssink"
)

// question is what of a handler decides which objects are selected and what of them is sent.
type question struct {
	Clusters, Resources, Namespaces []string
	Labels, Fields, Filter          string
	On                              []handlers.Transition
	Sent                            []string
	Identity                        *Identity
}

// delivery is what of a handler decides where it is delivered to, and how. What is in the
// files it names is not part of it: sinks look themselves.
type delivery struct {
	Webhook     *Webhook
	NATS        *natssink.Config
	Kafka       *kafkasink.Config
	Concurrency int
	Rate        float64
	Retry       handlers.Retry
	MaxLease    time.Duration
}

// digests fills in the digests of h, by which it is told what a changed file has changed of
// it. From is in neither: it says where a handler begins that nothing is known of.
func (h *Handler) digests() {
	labels := ""
	if h.Query.Labels != nil {
		labels = h.Query.Labels.String()
	}
	h.Digest = digest(question{
		h.Clusters, h.Resources, h.Query.Namespaces, labels, h.Query.Fields.String(), h.Filter, h.On, h.Fields, h.Identity,
	})
	h.SinkDigest = digest(delivery{h.Webhook, h.NATS, h.Kafka, h.Concurrency, h.Rate, h.Retry, h.MaxLease})
}

func digest(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // texts and numbers only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
