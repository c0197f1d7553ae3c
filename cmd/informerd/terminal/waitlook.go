package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// lookTime bounds what a look puts off the streams by, which alone see what happens. A server
// that is gone answers neither, but a stream that hears nothing is opened again.
const lookTime = 2 * time.Second

// look asks once whether all is so already. Streams tell the same, but each object in an
// event of its own and twice, which takes five times as long. What is not certain from the
// answers counts as not so: the streams follow, and they warn of what is odd.
func (w *waiter) look() bool {
	ctx, cancel := context.WithTimeout(w.session.ctx, lookTime)
	defer cancel()
	l := &look{ctx: ctx, selection: w.selection}
	l.client = w.session.Telling(func(string) { l.doubt = true })
	var all []*waited
	for _, one := range w.all {
		seen, err := l.see(one)
		if err != nil || l.doubt || !seen.so() {
			return false
		}
		all = append(all, seen)
	}
	w.all = all
	return true
}

// look asks questions that are answered once.
type look struct {
	*selection
	ctx    context.Context
	client *client.Client
	doubt  bool // an answer said that it is old, or not whole
}

// errUnclear is that answers do not tell how it stands.
var errUnclear = errors.New("it is not clear how it stands")

// see is how one stands, as streams would tell it. It is an error that a condition does not
// hold for all, or that what is to be gone is there.
func (l *look) see(one *waited) (*waited, error) {
	seen := *one
	seen.all = newObjects()
	v := one.values(l.selection)
	if one.gone {
		counted, err := l.count(v)
		if err == nil && counted.objects() > 0 {
			err = errUnclear
		}
		return &seen, err
	}
	v.Set("fields", "metadata.name,metadata.namespace")
	if one.filter != "" {
		v.Set("filter", both(l.filter, one.filter))
	}
	found, err := l.ask(v)
	if err == nil && len(found.versions) != found.objects() {
		err = errUnclear
	}
	if err == nil && one.filter != "" {
		err = l.checkAll(one, v, found)
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(found.keys)
	seen.all.versions, seen.all.keys = found.versions, found.keys
	seen.met = seen.all
	return &seen, nil
}

// checkAll makes sure that the objects for which the condition holds, found by asking v, are
// all there are. It holds for some of all, so as many are the same ones, if both were
// counted in the same contents: those of one version, which also were the same before the
// first question and after the second. A version alone does not say that: of several
// sources it is that of the one furthest on.
func (l *look) checkAll(one *waited, v url.Values, found *glance) error {
	counted, err := l.count(one.values(l.selection))
	if err != nil {
		return err
	}
	if found.tag == "" || !slices.EqualFunc(found.resources, counted.resources, resourceState.same) {
		return errUnclear
	}
	same, err := l.client.Unchanged(l.ctx, client.Path("query"), v, found.tag)
	if err == nil && !same {
		err = errUnclear
	}
	return err
}

// glance is an answer that is certain.
type glance struct {
	tag       string
	resources []resourceState
	plan      bool
	versions  map[string]version // as in objects, without uid and version
	keys      []string           // of versions, as they came
}

// resourceState is what an answer says of a resource that it is about.
type resourceState struct {
	Cluster, Resource, Kind string
	State, ResourceVersion  string
	Answered                bool
	Objects                 int // found
	FilterErrors            json.RawMessage
}

func (r resourceState) same(other resourceState) bool {
	return r.Cluster == other.Cluster && r.Resource == other.Resource && r.ResourceVersion == other.ResourceVersion && r.Objects == other.Objects
}

func (r resourceState) certain() bool {
	return r.Answered && r.State == "live" && r.ResourceVersion != "" && r.FilterErrors == nil && r.Objects >= 0
}

// name is what events call the resource.
func (r resourceState) name() string {
	if r.Cluster == "" {
		return r.Resource
	}
	return r.Cluster + "/" + r.Resource
}

// count asks how many objects v selects. A plan says so, and unlike a page of the objects it
// has informerd keep nothing for further pages.
func (l *look) count(v url.Values) (*glance, error) {
	v.Set("explain", "true")
	return l.ask(v)
}

func (l *look) ask(v url.Values) (*glance, error) {
	resp, err := l.client.Get(l.ctx, client.Path("query"), v)
	if err != nil {
		return nil, err
	}
	g := &glance{tag: resp.Header.Get("ETag")}
	r := glanceReader{glance: g}
	err = l.client.List(l.ctx, resp, g.member, r.item)
	if err == nil && g.resources == nil {
		err = errUnclear
	}
	return g, err
}

// objects is how many there are in all resources.
func (g *glance) objects() (n int) {
	for _, r := range g.resources {
		n += r.Objects
	}
	return n
}

// member reads a member of a list. What the list is about comes before its items.
func (g *glance) member(name string, value client.Value) error {
	switch name {
	case "metadata":
		var about struct{ Resources []resourceState }
		if err := value.Decode(&about); err != nil {
			return err
		}
		if g.resources = about.Resources; !slices.ContainsFunc(g.resources, func(r resourceState) bool { return !r.certain() }) {
			return nil
		}
		return errUnclear
	case "kind":
		g.plan = value.Text() == "Explanation"
	}
	return nil
}

// glanceRoom bounds what is made for objects before they have come.
const glanceRoom = 1 << 16

// glanceReader reads the items of a list, which are in the order of its resources.
type glanceReader struct {
	*glance
	resource, read int // which resource the next item is of, and how many were read of it
	about, before  glanced
	title          string // of objects like before, less the name
	text           []byte
}

// glanced is what is read of an item.
type glanced struct {
	kind, apiVersion, namespace string
	name                        client.Value
}

func (r *glanceReader) item(item client.Value) error {
	if r.plan {
		return nil
	}
	if r.versions == nil {
		n := max(0, min(r.objects(), glanceRoom))
		r.versions, r.keys = make(map[string]version, n), make([]string, 0, n)
	}
	r.before, r.about = r.about, glanced{}
	if err := item.Members(r.member); err != nil {
		return err
	}
	for ; r.resource < len(r.resources) && r.read == r.resources[r.resource].Objects; r.resource++ {
		r.read = 0
	}
	if r.resource == len(r.resources) || r.resources[r.resource].Kind != r.about.kind {
		return errUnclear
	}
	r.read++
	if r.title == "" || r.about.kind != r.before.kind || r.about.apiVersion != r.before.apiVersion {
		r.title = typeName(r.about.kind, groupOf(r.about.apiVersion)) + "/"
	}
	r.note(r.resources[r.resource].name())
	return nil
}

// note notes an object of a resource. All texts of it are parts of one.
func (r *glanceReader) note(resource string) {
	r.text = append(append(append(append(r.text[:0], resource...), ' '), r.about.namespace...), '/')
	if !r.about.name.IsZero() {
		r.text = r.about.name.AppendText(r.text)
	}
	key := len(r.text)
	name := key - len(resource) - len(" /") - len(r.about.namespace)
	r.text = append(append(r.text, r.title...), r.text[key-name:key]...)
	text := string(r.text)
	r.versions[text[:key]] = version{title: text[key:], name: text[key+len(r.title):]}
	r.keys = append(r.keys, text[:key])
}

func (r *glanceReader) member(name []byte, value client.Value) error {
	switch string(name) {
	case "kind":
		r.about.kind = value.TextAs(r.before.kind)
	case "apiVersion":
		r.about.apiVersion = value.TextAs(r.before.apiVersion)
	case "metadata":
		return value.Members(r.metadata)
	}
	return nil
}

func (r *glanceReader) metadata(name []byte, value client.Value) error {
	switch string(name) {
	case "name":
		r.about.name = value
	case "namespace":
		r.about.namespace = value.TextAs(r.before.namespace)
	}
	return nil
}
