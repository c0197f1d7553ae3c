package terminal

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// kind is what a name of a resource stands for.
type kind struct {
	Name       string `json:"name"` // as kubectl names it: deployments.apps
	Kind       string `json:"kind"`
	Group      string `json:"group"`
	Version    string `json:"version"`
	Resource   string `json:"resource"`
	Namespaced bool   `json:"namespaced"`
	Cluster    string `json:"cluster"`
	State      string `json:"state"`
	Objects    int    `json:"objects"`
	RawBytes   int    `json:"rawBytes"`
	Bytes      int    `json:"bytes"`
	Counts     struct{ Events int }
}

// category is what kubectl get all shows.
var category = strings.Split("pods,replicationcontrollers,services,daemonsets.apps,deployments.apps,replicasets.apps,"+
	"statefulsets.apps,horizontalpodautoscalers.autoscaling,cronjobs.batch,jobs.batch", ",")

// isGlob tells names of many resources from those of one.
func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// splitKinds reads pods,deployments; all is what it is to kubectl.
func splitKinds(text string) []string {
	var names []string
	for name := range strings.SplitSeq(text, ",") {
		if name == "all" {
			names = append(names, category...)
		} else if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// kind asks what name stands for. informerd's error proposes others where there is none.
// Where it holds several clusters, the first that has it says.
func (s *session) kind(name string, clusters []string) (*kind, error) {
	k, err := s.kindIn(name, slices.Concat(clusters, []string{""})[0])
	var refused *client.StatusError
	if len(clusters) > 0 || !errors.As(err, &refused) || !refused.Names("cluster") {
		return k, err
	}
	known, failed := s.clusters()
	if failed != nil {
		return nil, failed
	}
	for _, cluster := range known {
		if k, err = s.kindIn(name, cluster); err == nil {
			return k, nil
		}
	}
	return nil, err
}

func (s *session) kindIn(name, cluster string) (*kind, error) {
	v := url.Values{}
	if cluster != "" {
		v.Set("cluster", cluster)
	}
	var k kind
	if err := s.JSON(s.ctx, client.Path("resources", name), v, &k); err != nil {
		return nil, err
	}
	return &k, nil
}

// resources are all there are, of all clusters.
func (s *session) resources(v url.Values) ([]kind, error) {
	var l struct {
		Items []kind `json:"items"`
	}
	err := s.JSON(s.ctx, client.Path("resources"), v, &l)
	return l.Items, err
}

// clusters are the names of those that informerd holds.
func (s *session) clusters() ([]string, error) {
	kinds, err := s.resources(nil)
	var names []string
	for _, k := range kinds {
		names = append(names, k.Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// typeName is what -o name calls an object of it: deployment.apps.
func (k *kind) typeName() string { return typeName(k.Kind, k.Group) }

func typeName(kind, group string) string {
	if group == "" {
		return strings.ToLower(kind)
	}
	return strings.ToLower(kind) + "." + group
}
