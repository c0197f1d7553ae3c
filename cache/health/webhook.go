package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

// calling are the kinds whose objects make the API server call Services: when one of those
// is not there, what it should have been asked about is refused, or passes unchecked.
var calling = map[schema.GroupKind]bool{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: true,
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   true,
}

// call is a webhook, and the Service that it is.
type call struct {
	webhook string
	service cache.Key
	ignored bool // a call that fails lets pass what it was about
}

// calls are the webhooks of an object that are Services; the others are addresses, of
// which nothing is known.
func (o *object) calls() (all []call) {
	elements(o.webhooks, func(w value) bool {
		service := w.Get("clientConfig", "service")
		key := cache.Key{Namespace: text(service.Get("namespace")), Name: text(service.Get("name"))}
		if key.Name != "" {
			all = append(all, call{text(w.Get("name")), key, is(w.Get("failurePolicy"), "Ignore")})
		}
		return true
	})
	return all
}

// failing is the verdict on an object of whose calls some fail, for a reason that is told
// of each.
func failing(calls []call, reason func(service cache.Key) (reason, words string)) (h Health) {
	failed := int64(0)
	for _, c := range calls {
		why, words := reason(c.service)
		if why == "" {
			continue
		}
		if failed++; failed > 1 {
			continue
		}
		then := "is refused"
		if c.ignored {
			then = "passes unchecked"
		}
		h = Health{Status: Bad, Reason: why, Message: fmt.Sprintf("webhook %s calls Service %s, which %s: what it should be asked about %s", c.webhook, c.service, words, then)}
	}
	if failed > 1 {
		h.Message += "; likewise " + several(failed-1, "more webhook")
	}
	h.Reason, h.Message = bounded(h.Reason, maxReason), bounded(h.Message, maxMessage)
	return h
}
