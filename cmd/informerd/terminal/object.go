package terminal

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// parseObject reads the arguments that name one object: KIND/NAME, KIND NAME or an id.
func parseObject(args []string) (target, error) {
	targets, err := parseTargets(args)
	if err != nil {
		return target{}, err
	}
	if err := checkNames(targets); err != nil {
		return target{}, err
	}
	if len(targets) != 1 || len(targets[0].names) != 1 || len(targets[0].kinds) != 1 {
		return target{}, usagef("%q is not one object: write KIND/NAME or KIND NAME", strings.Join(args, " "))
	}
	return targets[0], nil
}

// locate says where the object is that t names: its resource, its namespace (- at cluster
// scope) and its name. Where no namespace is meant it is looked for in all.
func (s *session) locate(sel *selection, t target) (steps []string, err error) {
	questions, err := s.questions(sel, []target{t})
	if err != nil {
		return nil, err
	}
	q := questions[0]
	if steps, ok := q.object(sel); ok {
		return steps, nil
	}
	var found struct{ Items []partial }
	v := q.values(sel)
	v.Set("fields", "metadata.name,metadata.namespace")
	if err := s.JSON(s.ctx, client.Path("query"), v, &found); err != nil {
		return nil, err
	}
	switch len(found.Items) {
	case 0:
		return nil, no("%s %q not found %s", q.resources[0], q.names[0], sel.where())
	case 1:
		return []string{q.resources[0], cmp.Or(found.Items[0].Metadata.Namespace, "-"), q.names[0]}, nil
	}
	var places []string
	for _, item := range found.Items {
		places = append(places, cmp.Or(item.Cluster, item.Metadata.Namespace))
	}
	return nil, usagef("there are %d %s called %s, in %s: say which with -n, or --cluster", len(places), q.resources[0], q.names[0], strings.Join(places, ", "))
}

// graphValues are the parameters of a question about the relations of an object.
func (s *session) graphValues(sel *selection, more ...string) (url.Values, error) {
	v := url.Values{}
	for i := 0; i+1 < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return sel.cluster(v)
}
