package rawjson

import (
	"fmt"
	"slices"
)

// Spec says what to take from objects and what to leave out of their stored
// form.
type Spec struct {
	// Extract lists the paths whose values Run reports.
	Extract []Path
	// Drop lists fields that are cut out of the stored JSON, every occurrence
	// of them. A path must end in a field, not in an element; but for SecretCopies.
	Drop []Path
	// Redact lists places whose content is blanked: of an object the keys
	// stay and each value becomes "", of an array each element becomes "", and
	// anything else becomes "". With any of these, LastApplied is dropped too:
	// it repeats the whole object as one string.
	Redact []Path
}

// LastApplied is the annotation in which kubectl apply keeps the whole object.
var LastApplied = mustPath("metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']")

// Program is a compiled Spec. It is immutable and safe for concurrent use.
type Program struct {
	root     *node
	identity bool // take identity, labels and owners too
	single   int  // how many paths there are, if each yields one value at most
	valid    bool // the source is: what no path leads to is only passed over
	// alike: objects of one outline differ in nothing but texts, numbers, and keys of values of which
	// nothing is wanted, see Siblings. What is redacted is not left to that, and copies of Secrets are
	// told by what strings say.
	alike  bool
	unique bool // no key occurs twice: stop once all values are found
}

// identityPaths are read from every object. None can be dropped or redacted:
// a restart reads them back from the stored form.
var identityPaths = []struct {
	path string
	role role
	// whole: nothing below may be dropped or redacted either.
	whole bool
}{
	{path: "apiVersion", role: roleAPIVersion},
	{path: "kind", role: roleKind},
	{path: "metadata.name", role: roleName},
	{path: "metadata.namespace", role: roleNamespace},
	{path: "metadata.uid", role: roleUID},
	{path: "metadata.resourceVersion", role: roleResourceVersion},
	{path: "metadata.creationTimestamp", role: roleCreationTimestamp},
	{path: "metadata.deletionTimestamp", role: roleDeletionTimestamp},
	{path: "metadata.labels", role: roleLabels, whole: true},
	{path: "metadata.ownerReferences", role: roleOwners, whole: true},
	{path: "metadata.ownerReferences[*].uid", role: roleOwnerUID},
	{path: "metadata.ownerReferences[*].kind", role: roleOwnerKind},
	{path: "metadata.ownerReferences[*].name", role: roleOwnerName},
	{path: "metadata.ownerReferences[*].apiVersion", role: roleOwnerAPIVersion},
	{path: "metadata.ownerReferences[*].controller", role: roleOwnerController},
}

// A bookmark's annotations are looked at even where annotations are dropped.
var bookmarkPaths = []struct {
	path string
	role role
}{
	{"metadata.annotations", roleAnnotations},
	{"metadata.annotations['k8s.io/initial-events-end']", roleInitialEventsEnd},
}

// Compile checks spec and makes it runnable. It refuses to drop or redact
// identity, labels and owners, and to extract what is dropped or redacted: such
// a value would leak, or be gone after a restart.
func Compile(spec Spec) (*Program, error) {
	if len(spec.Redact) > 0 {
		spec.Drop = append(slices.Clone(spec.Drop), LastApplied)
	}
	root := &branch{}
	for _, p := range identityPaths {
		root.at(mustPath(p.path).steps()).role = p.role
	}
	for _, p := range bookmarkPaths {
		root.at(mustPath(p.path).steps()).role = p.role
	}
	for _, p := range spec.Drop {
		steps := p.steps()
		if p == SecretCopies {
			root.at(steps[:len(steps)-1]).copies = true
			continue
		}
		if err := checkRemoval("drop", p, steps); err != nil {
			return nil, err
		}
		if steps[len(steps)-1].kind != stepField {
			return nil, fmt.Errorf("drop %s: only fields can be dropped, not elements of an array", p)
		}
		root.at(steps).drop = true
	}
	for _, p := range spec.Redact {
		steps := p.steps()
		if err := checkRemoval("redact", p, steps); err != nil {
			return nil, err
		}
		root.at(steps).redact = true
	}
	for i, p := range spec.Extract {
		if err := checkExtract(p, spec); err != nil {
			return nil, err
		}
		b := root.at(p.steps())
		b.extract = append(b.extract, i)
	}
	n, err := resolve(root)
	if err != nil {
		return nil, err
	}
	alike := len(spec.Redact) == 0 && !slices.Contains(spec.Drop, SecretCopies)
	return &Program{root: n, identity: true, alike: alike}, nil
}

func mustPath(s string) Path {
	p, err := ParsePath(s)
	if err != nil {
		panic(err)
	}
	return p
}

func checkRemoval(verb string, p Path, steps []step) error {
	if p.IsZero() {
		return fmt.Errorf("%s: the path is empty", verb)
	}
	for _, id := range identityPaths {
		protected := mustPath(id.path).steps()
		if overlap(steps, protected) && (id.whole || len(steps) <= len(protected)) {
			return fmt.Errorf("%s %s: %s is needed to identify, select or relate objects and cannot be removed", verb, p, id.path)
		}
	}
	return nil
}

func checkExtract(p Path, spec Spec) error {
	if p.IsZero() {
		return fmt.Errorf("extract: the path is empty")
	}
	steps := p.steps()
	for _, r := range spec.Redact {
		if overlap(steps, r.steps()) {
			return fmt.Errorf("extract %s: it is redacted by %s", p, r)
		}
	}
	for _, d := range spec.Drop {
		if ds := d.steps(); len(ds) <= len(steps) && overlap(steps, ds) {
			return fmt.Errorf("extract %s: it is dropped by %s", p, d)
		}
	}
	return nil
}

// overlap reports whether one path can lead through the end of the other.
func overlap(a, b []step) bool {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x.kind == stepField || y.kind == stepField || x.kind == y.kind {
			return false // different names or indexes, or a name and an element
		}
	}
	return true
}

func checkNamed(p Path) error {
	if p.IsZero() {
		return fmt.Errorf("the path is empty")
	}
	return nil
}
