package gate

import (
	"net/http"
	"net/url"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/informerd/informerd/server/access"
)

// As is an asker for somebody whom the configuration names, in every cluster: what runs on
// its own acts with their rights. It may be used for as long as the Gate is.
func (g *Gate) As(name string, groups []string) access.Asker {
	a := newAsker(g, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}})
	a.fixed, a.name = &user.DefaultInfo{Name: name, Groups: groups}, name
	return a
}
