package server

import (
	"context"
	"sync"
	"time"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/complete"
	"github.com/informerd/informerd/server/kubeapi"
)

const (
	// schemaPatience is how long a completion waits for the API server: somebody
	// is typing.
	schemaPatience = 2 * time.Second
	// schemaPause is the time between two questions to one that did not answer.
	schemaPause = 30 * time.Second
	// maxSchemas bounds those kept.
	maxSchemas = 64
)

// kindSchemas keeps what objects of each resource can have, of the API server's
// OpenAPI documents. The zero value is ready but for its API.
type kindSchemas struct {
	api *kubeapi.API

	mu         sync.Mutex // guards byResource
	byResource map[cache.Resource]heldSchema
}

// heldSchema is a schema as of a document, nil if there was none.
type heldSchema struct {
	schema *complete.Schema
	tag    string
	asked  time.Time
}

// of returns the schema of a resource. An error means that there is none now,
// which a completion can do without.
func (s *kindSchemas) of(ctx context.Context, spec cache.Spec) (*complete.Schema, error) {
	held := s.get(spec.Resource)
	if held.schema == nil && time.Since(held.asked) < schemaPause {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, schemaPatience)
	defer cancel()
	body, tag, err := s.api.OpenAPI(ctx, spec.Cluster, spec.GVR.GroupVersion())
	switch {
	case err != nil && held.schema != nil:
		return held.schema, nil
	case err == nil && tag != "" && tag == held.tag:
		return held.schema, nil
	}
	now := heldSchema{tag: tag, asked: time.Now()}
	if err == nil {
		now.schema, err = complete.ParseSchema(body, spec.GVR.GroupVersion().WithKind(spec.Kind), spec.Drop)
	}
	s.put(spec.Resource, now)
	return now.schema, err
}

func (s *kindSchemas) get(r cache.Resource) heldSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byResource[r]
}

func (s *kindSchemas) put(r cache.Resource, h heldSchema) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byResource == nil || len(s.byResource) == maxSchemas {
		s.byResource = map[cache.Resource]heldSchema{}
	}
	s.byResource[r] = h
}
