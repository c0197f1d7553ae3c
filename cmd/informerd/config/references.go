package config

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/informerd/informerd/cache/graph"
)

// references reads the edges that the file declares.
func (r *reader) references(n *yaml.Node, path string) (all []graph.Rule) {
	r.list(n, path, func(n *yaml.Node, path string) {
		before := len(r.errs)
		rule := r.reference(n, path)
		if n.Kind != yaml.MappingNode || len(r.errs) > before {
			return // one mistake is told once
		}
		if err := rule.Check(); err != nil {
			r.errorf(n, path, "%v", err)
			return
		}
		all = append(all, rule)
	})
	return all
}

func (r *reader) reference(n *yaml.Node, path string) graph.Rule {
	var rule graph.Rule
	given := map[string]bool{}
	text := func(key string, into *string, check func(string) error) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) {
			given[key] = true
			*into, _ = r.checked(n, path, check)
		}
	}
	r.mapping(n, path, fieldsOf{
		"edge":          text("edge", &rule.Edge, checkEdge),
		"from":          text("from", &rule.From, checkResource),
		"path":          text("path", &rule.Path, checkPath),
		"to":            text("to", &rule.To, checkResource),
		"namespacePath": text("namespacePath", &rule.NamespacePath, checkPath),
	})
	for _, key := range []string{"edge", "from", "path"} {
		if !given[key] && n.Kind == yaml.MappingNode {
			r.errorf(n, path, "needs %s, as in {edge: paints, from: widgets.example.com, path: spec.color, to: configmaps}", key)
		}
	}
	return rule
}

// searchTexts reads paths by the resource they are of.
func (r *reader) searchTexts(n *yaml.Node, path string) map[string][]string {
	texts := map[string][]string{}
	r.pairs(n, path, func(key, value *yaml.Node) {
		path := join(path, key.Value)
		if err := checkResource(key.Value); err != nil {
			r.errorf(key, path, "%v", err)
			return
		}
		texts[key.Value] = r.texts(value, path, checkPath)
	})
	if len(texts) == 0 {
		return nil
	}
	return texts
}

var (
	edgeName     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*$`)
	resourceName = regexp.MustCompile(`^[a-z][a-z0-9-]*([.][a-z0-9-]+)*$`)
)

func checkEdge(name string) error {
	if !edgeName.MatchString(name) {
		return fmt.Errorf("bad name %q: letters, digits and -, a letter first", name)
	}
	return nil
}

func checkResource(name string) error {
	if !resourceName.MatchString(name) {
		return fmt.Errorf("bad resource %q: write one as kubectl names it, with its group: pods, deployments.apps", name)
	}
	return nil
}

func checkPath(path string) error {
	_, err := readPath(path)
	return err
}
