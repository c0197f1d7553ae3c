package rbac

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Names are what the objects are called, and who gets the rights.
type Names struct {
	Role, Namespace, ServiceAccount string
}

// WriteManifest writes roles and their bindings as YAML for kubectl apply.
func (n *Needs) WriteManifest(w io.Writer, names Names) error {
	p := &printer{}
	p.comment("", "The rights that informerd needs in this cluster, for the service account "+names.ServiceAccount+
		" in the namespace "+names.Namespace+". Written by informerd rbac.")
	p.remarks(n.Remarks)
	p.comment("", granted)
	p.role("ClusterRole", names.Role, "", n.Everywhere)
	p.binding("ClusterRole", names, "")
	for _, ns := range slices.Sorted(maps.Keys(n.In)) {
		p.role("Role", names.Role, ns, n.In[ns])
		p.binding("Role", names, ns)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// WriteValues writes the same as values of the Helm chart.
func (n *Needs) WriteValues(w io.Writer) error {
	p := &printer{}
	p.comment("", "The rights that informerd needs in this cluster, as values of its Helm chart. Written by informerd rbac.")
	p.remarks(n.Remarks)
	p.comment("", granted)
	p.line("rbac:")
	p.line("  rules:")
	p.grants("    ", n.Everywhere)
	p.line("  namespaceRules:%s", orNothing(len(n.In) == 0, " {}"))
	for _, ns := range slices.Sorted(maps.Keys(n.In)) {
		p.line("    %s:", quoted(ns))
		p.grants("      ", n.In[ns])
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// granted is what needs no rule here.
const granted = "Not among them, since every authenticated user has them by default: discovery, OpenAPI and the version " +
	"(system:discovery), and reviews of its own rights (system:basic-user)."

// printer makes YAML with comments.
type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *printer) remarks(all []string) {
	for _, r := range all {
		p.line("#")
		p.comment("", r)
	}
	if len(all) > 0 {
		p.line("#")
	}
}

// comment writes text in lines of reasonable length.
func (p *printer) comment(indent, text string) {
	const width = 96
	line := indent + "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > width {
			p.line("%s", line)
			line = indent + "#"
		}
		line += " " + word
	}
	p.line("%s", line)
}

func (p *printer) role(kind, name, namespace string, grants []Grant) {
	p.line("---")
	p.line("apiVersion: rbac.authorization.k8s.io/v1")
	p.line("kind: %s", kind)
	p.metadata(name, namespace)
	p.line("rules:")
	p.grants("  ", grants)
}

func (p *printer) metadata(name, namespace string) {
	p.line("metadata:")
	p.line("  name: %s", quoted(name))
	if namespace != "" {
		p.line("  namespace: %s", quoted(namespace))
	}
}

func (p *printer) grants(indent string, grants []Grant) {
	for _, g := range grants {
		if g.Why != "" {
			p.comment(indent, g.Why)
		}
		p.line("%s- apiGroups: %s", indent, list(g.Groups))
		p.line("%s  resources: %s", indent, list(g.Resources))
		if len(g.Names) > 0 {
			p.line("%s  resourceNames: %s", indent, list(g.Names))
		}
		p.line("%s  verbs: %s", indent, list(g.Verbs))
	}
}

func (p *printer) binding(kind string, names Names, namespace string) {
	p.line("---")
	p.line("apiVersion: rbac.authorization.k8s.io/v1")
	p.line("kind: %sBinding", kind)
	p.metadata(names.Role, namespace)
	p.line("roleRef:")
	p.line("  apiGroup: rbac.authorization.k8s.io")
	p.line("  kind: %s", kind)
	p.line("  name: %s", quoted(names.Role))
	p.line("subjects:")
	p.line("  - kind: ServiceAccount")
	p.line("    name: %s", quoted(names.ServiceAccount))
	p.line("    namespace: %s", quoted(names.Namespace))
}

func list(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = quoted(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// quoted puts quotes around what YAML would read as something else than a name.
func quoted(name string) string {
	if name == "" || strings.ContainsAny(name, "*") || name[0] >= '0' && name[0] <= '9' ||
		slices.Contains([]string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, name) {
		return `"` + name + `"`
	}
	return name
}

func orNothing(cond bool, text string) string {
	if cond {
		return text
	}
	return ""
}
