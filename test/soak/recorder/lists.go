package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
)

// Tiers are the values of the label "tier" that traffic gives.
var Tiers = []string{"red", "green", "blue"}

func someSelection(random *rand.Rand) checker.Selection {
	if random.IntN(3) > 0 {
		return checker.Selection{}
	}
	return checker.Selection{Tier: Tiers[random.IntN(len(Tiers))]}
}

// report tells the checker of a whole list.
func (r *Recorder) report(reader, path string, resource history.Resource, s checker.Selection, a *answer, change func(*checker.Answer)) error {
	objects := map[string]history.Object{}
	version, _, err := parseList(resource, a.body, objects)
	if err != nil {
		r.bad(reader, path, err)
		return nil
	}
	report := checker.Answer{Freshness: a.Freshness, Reader: reader, Resource: resource.Name(), Selection: s, Version: version, Objects: objects}
	if change != nil {
		change(&report)
	}
	r.Checker.Answer(report)
	return nil
}

// list lists a resource, now and then a part of it.
func (r *Recorder) list(ctx context.Context, random *rand.Rand, reader string) error {
	resource, s := r.pick(random), someSelection(random)
	p := joined(path(resource, ""), selectionQuery(s))
	if random.IntN(2) == 0 {
		p = joined(path(resource, ""), selectionQuery(s), "resourceVersion=0")
	}
	a, err := r.ask(ctx, reader, p)
	if err != nil {
		return err
	}
	return r.report(reader, p, resource, s, a, nil)
}

// consistent lists with everything that was committed before the question.
func (r *Recorder) consistent(ctx context.Context, random *rand.Rand, reader string) error {
	resource := r.pick(random)
	epoch := r.History.Now()
	least := epoch.Before(resource.Name(), time.Now())
	held := r.History.Held()
	a, err := r.ask(ctx, reader, path(resource, ""), "Informerd-Reads", "consistent")
	if err != nil {
		return err
	}
	return r.report(reader, path(resource, ""), resource, checker.Selection{}, a, func(l *checker.Answer) {
		if !held && !r.History.Held() && epoch == r.History.Now() {
			l.AtLeast = least
		}
	})
}

// exact lists at, or not before, a version of a moment ago.
func (r *Recorder) exact(ctx context.Context, random *rand.Rand, reader string) error {
	resource := r.pick(random)
	version := r.History.Now().Before(resource.Name(), time.Now().Add(-time.Duration(random.IntN(3000))*time.Millisecond))
	if version == 0 {
		return nil
	}
	match := []string{"Exact", "NotOlderThan"}[random.IntN(2)]
	p := joined(path(resource, ""), "resourceVersion="+strconv.FormatInt(version, 10), "resourceVersionMatch="+match)
	a, err := r.ask(ctx, reader, p)
	if err != nil {
		return err
	}
	return r.report(reader, p, resource, checker.Selection{}, a, func(l *checker.Answer) {
		if match == "Exact" {
			l.Exactly = version
		} else {
			l.AtLeast = version
		}
	})
}

// pages lists page by page; all pages must be of one version.
func (r *Recorder) pages(ctx context.Context, random *rand.Rand, reader string) error {
	resource, s := r.pick(random), someSelection(random)
	base, limit := path(resource, ""), "limit="+strconv.Itoa(7+random.IntN(60))
	l, err := r.readPages(ctx, reader, resource, func(next string) string {
		return joined(base, limit, selectionQuery(s), next)
	}, func() { pause(ctx, time.Duration(random.IntN(100))*time.Millisecond) })
	if l == nil {
		return err
	}
	r.Checker.Answer(l.answer(reader, resource, s))
	return nil
}

// paged is a list that was read page by page.
type paged struct {
	first   *answer
	version int64
	objects map[string]history.Object
	names   []string // in the order they were told
}

func (l *paged) answer(reader string, resource history.Resource, s checker.Selection) checker.Answer {
	return checker.Answer{Freshness: l.first.Freshness, Reader: reader, Resource: resource.Name(), Selection: s, Version: l.version, Objects: l.objects}
}

// readPages reads a list page by page from path, which gets the query of the next page, and
// calls between before each but the first. It returns nil without an error if what is
// told is wrong, which it has reported.
func (r *Recorder) readPages(ctx context.Context, reader string, resource history.Resource, path func(next string) string, between func()) (*paged, error) {
	l := &paged{objects: map[string]history.Object{}}
	for next := ""; ; between() {
		p := path(next)
		a, err := r.ask(ctx, reader, p)
		if err != nil {
			return nil, err
		}
		if l.first == nil {
			l.first = a
		}
		was := l.version
		l.names = append(l.names, namesOf(a.body)...)
		if l.version, next, err = parseList(resource, a.body, l.objects); err != nil {
			r.bad(reader, p, err)
			return nil, nil
		}
		if was != 0 && was != l.version {
			r.bad(reader, p, fmt.Errorf("pages are of versions %d and %d", was, l.version))
			return nil, nil
		}
		if next == "" {
			return l, nil
		}
		next = "continue=" + url.QueryEscape(next)
	}
}

// get asks for one object that is or was there.
func (r *Recorder) get(ctx context.Context, random *rand.Rand, reader string) error {
	resource := r.pick(random)
	keys := r.History.Now().Keys(resource.Name())
	if len(keys) == 0 {
		return nil
	}
	key := keys[random.IntN(len(keys))]
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	p := path(resource, namespace) + "/" + name
	if random.IntN(2) == 0 && !resource.Loose { // which would refuse keys of another scope
		p = fmt.Sprintf("/v1/resources/%s/objects/%s/%s", resource.Name(), orDash(namespace), name)
	}
	a, err := r.ask(ctx, reader, p)
	if code(err) == http.StatusNotFound {
		return nil // says neither of which version nor how old it is
	}
	if err != nil {
		return err
	}
	held, o, err := history.Read(resource, a.body)
	if err != nil || held != key {
		r.bad(reader, p, fmt.Errorf("it is %q: %w", held, err))
		return nil
	}
	version, _ := strconv.ParseInt(a.header.Get("Informerd-Resource-Version"), 10, 64)
	r.Checker.Single(checker.Single{Freshness: a.Freshness, Reader: reader, Resource: resource.Name(), Key: key, Found: true, Object: o, Version: version})
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// query asks /v1 in its many ways for the same: by an index, a filter, a
// selector, sorted, page by page.
func (r *Recorder) query(ctx context.Context, random *rand.Rand, reader string) error {
	resource := r.pick(random)
	tier := Tiers[random.IntN(len(Tiers))]
	base := "/v1/resources/" + resource.Name() + "/objects"
	ways := []string{
		"index=label:tier%3D" + tier,
		"labelSelector=tier%3D" + tier,
		"fieldSelector=metadata.labels.tier%3D" + tier,
		"filter=" + url.QueryEscape(`has(object.metadata.labels.tier) && object.metadata.labels.tier == "`+tier+`"`),
	}
	way, sorted := ways[random.IntN(len(ways))], []string{"", "sort=metadata.name", "sort=-metadata.name"}[random.IntN(3)]
	l, err := r.readPages(ctx, reader, resource, func(next string) string {
		return joined(base, way, sorted, "limit="+strconv.Itoa(5+random.IntN(40)), next)
	}, func() {})
	if l == nil {
		return err
	}
	names := l.names
	ordered := slices.IsSorted(names)
	if strings.HasSuffix(sorted, "-metadata.name") {
		slices.Reverse(names)
		ordered = slices.IsSorted(names)
	}
	if sorted != "" && !ordered {
		r.bad(reader, base+"?"+way+"&"+sorted, fmt.Errorf("not in order: %.300v", names))
	}
	r.Checker.Answer(l.answer(reader, resource, checker.Selection{Tier: tier}))
	return nil
}

func namesOf(body []byte) (names []string) {
	var l struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	_ = json.Unmarshal(body, &l) // parseList tells of errors
	for _, i := range l.Items {
		names = append(names, i.Metadata.Name)
	}
	return names
}

// kinds asks one question of all resources.
func (r *Recorder) kinds(ctx context.Context, random *rand.Rand, reader string) error {
	s := checker.Selection{Tier: Tiers[random.IntN(len(Tiers))]}
	byName := map[string]history.Resource{}
	var asked []string
	for _, resource := range r.Resources {
		// One that may be gone would make the question wrong.
		if !resource.Loose {
			byName[resource.Kind] = resource
			asked = append(asked, resource.Name())
		}
	}
	p := joined("/v1/query", "resources="+strings.Join(asked, ","), selectionQuery(s))
	a, err := r.ask(ctx, reader, p)
	if err != nil {
		return err
	}
	var l struct {
		Metadata struct {
			Resources []struct {
				Kind            string
				Answered        bool
				ResourceVersion string
				State           string
			}
		}
		Items []map[string]any
	}
	if err := json.Unmarshal(a.body, &l); err != nil {
		r.bad(reader, p, err)
		return nil
	}
	found := map[string]map[string]history.Object{}
	for _, item := range l.Items {
		kind, _ := item["kind"].(string)
		resource, ok := byName[kind]
		if !ok {
			r.bad(reader, p, fmt.Errorf("an object of kind %q", kind))
			return nil
		}
		key, o, err := history.Parse(resource, item)
		if err != nil {
			r.bad(reader, p, err)
			return nil
		}
		if found[kind] == nil {
			found[kind] = map[string]history.Object{}
		}
		found[kind][key] = o
	}
	for _, of := range l.Metadata.Resources {
		version, err := strconv.ParseInt(of.ResourceVersion, 10, 64)
		if !of.Answered || err != nil {
			continue
		}
		f := a.Freshness
		f.State = "" // it has no age
		r.Checker.Answer(checker.Answer{
			Freshness: f, Reader: reader, Resource: byName[of.Kind].Name(), Selection: s, Version: version, Objects: found[of.Kind],
		})
	}
	return nil
}
