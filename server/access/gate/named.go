package gate

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/informerd/informerd/server/access"
)

// maxPlaces bounds the places that are asked about because a request names them.
const maxPlaces = 50

// clustersOf are the clusters that a request names.
func clustersOf(r *http.Request) []string {
	if rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		return notEmpty([]string{name})
	}
	if !strings.HasPrefix(r.URL.Path, "/v1/") {
		return nil
	}
	return notEmpty(r.URL.Query()["cluster"])
}

func notEmpty(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// namedBy are the places that a request names. It reads generously: a place too many
// costs a question, and shows nobody more than they may see.
func namedBy(r *http.Request) access.Named {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) > 2 && parts[0] == "clusters" {
		parts = parts[2:]
	}
	switch parts[0] {
	case "v1":
		return namedByQuery(r, parts)
	case "api", "apis":
		return namedByPath(r, parts)
	}
	return access.Named{}
}

// namedByQuery reads a request of the query API:
//
//	/v1/resources/{resource}/objects/{namespace}/{name}
//	/v1/graph/{resource}/{namespace}/{name}
//	/v1/...?namespace=a&namespace=b
func namedByQuery(r *http.Request, parts []string) access.Named {
	var n access.Named
	if len(parts) == 6 && parts[1] == "resources" && parts[3] == "objects" || len(parts) == 5 && parts[1] == "graph" {
		namespace, name := parts[len(parts)-2], parts[len(parts)-1]
		if namespace == "-" {
			namespace = ""
		}
		n.Places = []access.Place{{Namespace: namespace, Name: name}}
		n.Only = parts[1] == "resources"
		return n
	}
	plain := true
	for _, namespace := range r.URL.Query()["namespace"] {
		if namespace == "" || strings.ContainsAny(namespace, `*?[\`) || len(n.Places) == maxPlaces {
			plain = false
			continue
		}
		n.Places = append(n.Places, access.Place{Namespace: namespace})
	}
	// A graph or a completion looks beyond the namespaces it is asked about.
	n.Only = plain && len(n.Places) > 0 && (parts[1] == "query" || slices.Contains(parts, "objects"))
	return n
}

// namedByPath reads a request of the Kubernetes API:
//
//	/api/v1[/watch][/namespaces/{namespace}]/{resource}[/{name}]
func namedByPath(r *http.Request, parts []string) access.Named {
	rest := parts[min(len(parts), 2):]
	if parts[0] == "apis" {
		rest = parts[min(len(parts), 3):]
	}
	if len(rest) > 1 && rest[0] == "watch" {
		rest = rest[1:]
	}
	place := access.Place{}
	if len(rest) > 2 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize" {
		place.Namespace, rest = rest[1], rest[2:]
	}
	query := r.URL.Query()
	n := access.Named{LabelSelector: query.Get("labelSelector"), FieldSelector: query.Get("fieldSelector")}
	only := place.Namespace != "" || len(rest) > 1
	if len(rest) > 1 {
		place.Name = rest[1]
	} else if selector, err := fields.ParseSelector(n.FieldSelector); err == nil {
		place.Name, _ = selector.RequiresExactMatch("metadata.name")
	}
	if place != (access.Place{}) {
		n.Places, n.Only = []access.Place{place}, only
	}
	return n
}
