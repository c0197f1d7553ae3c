package config

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pattern selects resources by their names as kubectl writes them:
//
//	pods                  the core group's pods
//	deployments.apps      a resource of a group
//	deployments.v1.apps   the same, in this version if the server has it
//	*.apps                everything in a group
//	*                     everything
//
// Resource and group may be globs. A star in one never reaches into the other:
// *.cert-manager.io is everything in the group cert-manager.io, and
// *.*.cert-manager.io everything in the groups below it.
type Pattern struct {
	text string
	// resource and group are globs, version is literal or empty. All of them
	// empty but for text matches everything.
	resource, version, group string
}

var (
	versionSegment = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
	resourceGlob   = regexp.MustCompile(`^[a-z0-9*?\[\]^-]+$`)
	groupGlob      = regexp.MustCompile(`^[a-z0-9*?\[\]^.-]*$`)
)

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	switch {
	case text == "":
		return Pattern{}, errors.New("is empty: name a resource, such as pods, deployments.apps or *")
	case text == "*":
		return p, nil
	case strings.Contains(text, "/"):
		return Pattern{}, fmt.Errorf("bad pattern %q: the group comes last, after a dot, as in deployments.apps or deployments.v1.apps; subresources cannot be watched", text)
	case text != strings.ToLower(text):
		return Pattern{}, fmt.Errorf("bad pattern %q: resource names are lower-case plurals: pods, not Pod", text)
	}
	p.resource, p.group, _ = strings.Cut(text, ".")
	if version, group, _ := strings.Cut(p.group, "."); versionSegment.MatchString(version) {
		p.version, p.group = version, group
	}
	if !resourceGlob.MatchString(p.resource) || !groupGlob.MatchString(p.group) {
		return Pattern{}, fmt.Errorf("bad pattern %q: write it as kubectl does: pods, deployments.apps, deployments.v1.apps, *.apps or *", text)
	}
	if strings.HasPrefix(p.group, ".") || strings.HasSuffix(p.group, ".") || strings.Contains(p.group, "..") ||
		strings.HasSuffix(text, ".") && p.version == "" {
		return Pattern{}, fmt.Errorf("bad pattern %q: a name between dots is missing", text)
	}
	if badGlob(p.resource) || badGlob(p.group) {
		return Pattern{}, fmt.Errorf("bad glob %q: a [ needs its ], as in pod[a-z]*", text)
	}
	return p, nil
}

func badGlob(glob string) bool {
	_, err := path.Match(glob, "")
	return err != nil
}

func mustPatterns(texts ...string) []Pattern {
	all := make([]Pattern, len(texts))
	for i, t := range texts {
		p, err := ParsePattern(t)
		if err != nil {
			panic(err)
		}
		all[i] = p
	}
	return all
}

// String is the pattern as it was written.
func (p Pattern) String() string { return p.text }

// Equal tells whether both were written alike.
func (p Pattern) Equal(o Pattern) bool { return p == o }

// Version is the version p pins, empty if it takes any.
func (p Pattern) Version() string { return p.version }

// Resource is what p matches before its first dot, a glob or a literal.
func (p Pattern) Resource() string {
	if p.everything() {
		return "*"
	}
	return p.resource
}

// Group is what p matches of the group, a glob or a literal: "" is the core group.
func (p Pattern) Group() string {
	if p.everything() {
		return "*"
	}
	return p.group
}

// Matches tells whether p selects gr, whatever its version.
func (p Pattern) Matches(gr schema.GroupResource) bool {
	if p.everything() {
		return true
	}
	return matches(p.resource, gr.Resource) && matches(p.group, gr.Group)
}

// Literal is the one resource p can match, false if p is a glob.
func (p Pattern) Literal() (schema.GroupResource, bool) {
	if p.everything() || strings.ContainsAny(p.text, `*?[`) {
		return schema.GroupResource{}, false
	}
	return schema.GroupResource{Group: p.group, Resource: p.resource}, true
}

func (p Pattern) everything() bool { return p.resource == "" }

// covers tells whether p certainly matches all that o does. It does not see
// through two globs that are written differently.
func (p Pattern) covers(o Pattern) bool {
	if p.version != "" && p.version != o.version {
		return false
	}
	if gr, ok := o.Literal(); ok {
		return p.Matches(gr)
	}
	return p.everything() || p.resource == o.resource && p.group == o.group
}

func matches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}
