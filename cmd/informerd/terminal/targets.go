package terminal

import (
	"net/url"
	"slices"
	"strings"
)

// target is what one or more arguments name: objects of resources, all or by name.
type target struct {
	kinds     []string
	names     []string // none: all
	namespace string   // "" where the argument names none, "-" at cluster scope
}

// parseTargets reads arguments as kubectl get does, pods,deployments or pods NAME... or
// pods/NAME svc/NAME, and the ids that informerd prints: pods/NAMESPACE/NAME.
func parseTargets(args []string) ([]target, error) {
	if !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "/") }) {
		if len(args) == 0 {
			return nil, usagef("name a kind, such as pods or pods,deployments; '*' is all")
		}
		kinds := splitKinds(args[0])
		if len(kinds) == 0 {
			return nil, usagef("%q names no kind", args[0])
		}
		return []target{{kinds: kinds, names: args[1:]}}, nil
	}
	var all []target
	for _, arg := range args {
		t, err := parseReference(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// parseReference reads KIND/NAME or KIND/NAMESPACE/NAME.
func parseReference(arg string) (target, error) {
	steps := strings.Split(arg, "/")
	if len(steps) < 2 || len(steps) > 3 || slices.Contains(steps, "") {
		return target{}, usagef("%q is no object: write KIND/NAME, or KIND/NAMESPACE/NAME (the namespace is - at cluster scope)", arg)
	}
	if strings.ContainsAny(steps[0], ",*?[") {
		return target{}, usagef("%q names several kinds: an object is of one", steps[0])
	}
	t := target{kinds: steps[:1], names: steps[len(steps)-1:]}
	if len(steps) == 3 {
		t.namespace = steps[1]
	}
	return t, nil
}

// question is one request to /v1/query: about resources which are all namespaced, or none.
type question struct {
	resources  []string
	kinds      []*kind // none where the resources are a glob
	namespaced bool
	namespaces []string // nil: all
	names      []string
}

// questions turns targets into requests. Each kind is asked for first: one that is unknown
// is an error, and kubectl's rule is that a namespace says nothing of a node.
func (s *session) questions(sel *selection, targets []target) ([]question, error) {
	var all []question
	for _, t := range targets {
		byScope := map[bool]*question{}
		for _, name := range t.kinds {
			k, err := s.kindOf(name, sel)
			if err != nil {
				return nil, err
			}
			namespaced := k == nil || k.Namespaced
			q := byScope[namespaced]
			if q == nil {
				q = &question{namespaced: namespaced, names: t.names}
				byScope[namespaced] = q
				if namespaced {
					q.namespaces = sel.namespaces
				}
			}
			if k != nil {
				q.kinds = append(q.kinds, k)
				name = k.Name
			}
			q.resources = append(q.resources, name)
		}
		for _, namespaced := range []bool{true, false} {
			if q := byScope[namespaced]; q != nil {
				if err := q.place(t.namespace); err != nil {
					return nil, err
				}
				all = append(all, *q)
			}
		}
	}
	return all, nil
}

// kindOf is nil for a glob.
func (s *session) kindOf(name string, sel *selection) (*kind, error) {
	if isGlob(name) {
		return nil, nil
	}
	return s.kind(name, sel.clusters)
}

// place takes the namespace from an argument that has one.
func (q *question) place(namespace string) error {
	switch {
	case namespace == "":
	case namespace == "-" && q.namespaced:
		return usagef("%s are in namespaces: the - in %s/-/%s is for what is in none", q.resources[0], q.resources[0], q.names[0])
	case namespace != "-" && !q.namespaced:
		return usagef("%s are in no namespace: write %s/%s", q.resources[0], q.resources[0], q.names[0])
	case q.namespaced:
		q.namespaces = []string{namespace}
	}
	return nil
}

// title is what -o name calls an object that is asked for by name.
func (q *question) title(name string) string {
	if len(q.kinds) == 1 {
		return q.kinds[0].typeName() + "/" + name
	}
	return strings.Join(q.resources, ",") + "/" + name
}

// values are the parameters of the request.
func (q *question) values(sel *selection) url.Values {
	v := url.Values{"resources": {strings.Join(q.resources, ",")}}
	if q.namespaced && q.namespaces != nil {
		v["namespace"] = q.namespaces
	}
	sel.put(v)
	if len(q.names) > 0 {
		byName := "metadata.name=" + q.names[0]
		if len(q.names) > 1 {
			byName = "metadata.name in (" + strings.Join(q.names, ",") + ")"
		}
		if sel.fields != "" {
			byName += "," + sel.fields
		}
		v.Set("fieldSelector", byName)
	}
	return v
}

// object says where the only object is that the question can be about.
func (q *question) object(sel *selection) (steps []string, ok bool) {
	if len(q.kinds) != 1 || len(q.names) != 1 || len(sel.clusters) > 1 || sel.labels+sel.fields+sel.filter != "" {
		return nil, false
	}
	namespace := "-"
	if q.namespaced {
		if len(q.namespaces) != 1 || isGlob(q.namespaces[0]) {
			return nil, false
		}
		namespace = q.namespaces[0]
	}
	return []string{q.kinds[0].Name, namespace, q.names[0]}, true
}

// checkNames refuses names that no object has, and that a selector would read as more.
func checkNames(targets []target) error {
	for _, t := range targets {
		for _, name := range t.names {
			if name == "" || strings.ContainsAny(name, ",()= !\"'\\/%") {
				return usagef("%q is no name of an object", name)
			}
		}
	}
	return nil
}
