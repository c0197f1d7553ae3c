package health

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/rawjson"
)

// caller is an object that is no better than the Services it calls.
type caller struct {
	node  *node
	calls []call
}

var (
	servicesKind = schema.GroupKind{Kind: "Service"}
	slicesKind   = schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
)

// sliceOf is the label by which an EndpointSlice names its Service.
const sliceOf = "kubernetes.io/service-name"

// judgeCallers judges what is good by its own bytes by the Services that it calls, too.
func (t *tree) judgeCallers(ctx context.Context) error {
	if len(t.callers) == 0 {
		return nil
	}
	known := services{tree: t, services: t.reader(servicesKind), slices: t.reader(slicesKind), found: map[cache.Key][2]string{}}
	for _, c := range t.callers {
		if c.node.own.Status != Good {
			continue
		}
		h := failing(c.calls, func(key cache.Key) (string, string) { return known.wrong(ctx, key) })
		if h.Status != Good {
			c.node.own = &h
		}
	}
	return known.err
}

// reader is that of a kind; nil where nothing of it can be read or seen.
func (t *tree) reader(of schema.GroupKind) *known {
	for id := range t.kinds {
		if t.kinds[id].group == of && t.readers[id] != nil {
			return &known{t.readers[id], t.scopes[id]}
		}
	}
	return nil
}

// known is what can be read of a kind.
type known struct {
	*cache.Reader
	scope cache.Scope
}

// all reports whether all there is in a namespace can be read: what one may not see is not
// missing.
func (k *known) all(namespace string) bool { return k != nil && k.scope.Namespace(namespace) }

// services finds out what is wrong with Services, with each once.
type services struct {
	tree             *tree
	services, slices *known
	found            map[cache.Key][2]string
	err              error
}

// wrong says why a Service does not answer, in a word and in words; "" if it may.
func (s *services) wrong(ctx context.Context, key cache.Key) (reason, words string) {
	if found, ok := s.found[key]; ok {
		return found[0], found[1]
	}
	reason, words = s.look(ctx, key)
	s.found[key] = [2]string{reason, words}
	return reason, words
}

func (s *services) look(ctx context.Context, key cache.Key) (reason, words string) {
	if !s.services.all(key.Namespace) {
		return "", ""
	}
	service, ok := s.services.Get(key)
	if !ok {
		return "ServiceNotFound", "is not there"
	}
	if s.err != nil || !s.slices.all(key.Namespace) || elsewhere(service) {
		return "", ""
	}
	of := labels.SelectorFromSet(labels.Set{sliceOf: key.Name})
	slices, err := s.slices.Select(ctx, cache.Query{Namespaces: []string{key.Namespace}, Labels: of})
	if err != nil {
		s.err = err
		return "", ""
	}
	for _, o := range slices.Objects {
		if answers(o) {
			return "", ""
		}
	}
	return "NoReadyEndpoints", "has no ready endpoints"
}

// elsewhere reports whether a Service is a name outside of the cluster.
func elsewhere(service *cache.Object) bool {
	json, err := service.JSON()
	return err != nil || is(rawjson.NewLazy(json).Get("spec", "type"), "ExternalName")
}

// answers reports whether one of the endpoints of an EndpointSlice is ready. One that says
// nothing of it is.
func answers(slice *cache.Object) (ready bool) {
	json, err := slice.JSON()
	if err != nil {
		return true // nothing is known against it
	}
	elements(rawjson.NewLazy(json).Get("endpoints"), func(e value) bool {
		said := e.Get("conditions", "ready")
		ready = len(said) == 0 || said[0] != 'f'
		return !ready
	})
	return ready
}
