package discovery

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	errDown = errors.New("down")
	start   = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
)

// says builds an answer from "group/version: resource resource", in order. A
// version "group/version!" did not answer; "resource-" lacks watch.
func says(lines ...string) answer {
	var a answer
	for _, line := range lines {
		gv, names, _ := strings.Cut(line, ":")
		groupName, v := "", gv
		if i := strings.IndexByte(gv, '/'); i >= 0 {
			groupName, v = gv[:i], gv[i+1:]
		}
		ver := version{}
		ver.name, _ = strings.CutSuffix(v, "!")
		if ver.name != v {
			ver.err = errDown
		}
		for _, name := range strings.Fields(names) {
			s := served{name: name, kind: "K" + name, verbs: []string{"get", "list", "watch"}, namespaced: true}
			if base, ok := strings.CutSuffix(name, "-"); ok {
				s.name, s.kind, s.verbs = base, "K"+base, []string{"get", "list"}
			}
			ver.resources = append(ver.resources, s)
		}
		if n := len(a.groups); n > 0 && a.groups[n-1].name == groupName {
			a.groups[n-1].versions = append(a.groups[n-1].versions, ver)
		} else {
			a.groups = append(a.groups, group{name: groupName, versions: []version{ver}})
		}
	}
	return a
}

// crd is a row of an established CRD that serves versions.
func crd(groupName, plural, uid string, generation int64, versions ...string) (string, row[crdSpec]) {
	r := row[crdSpec]{uid: uid, generation: generation, ready: true}
	r.spec.Group, r.spec.Names.Plural = groupName, plural
	for _, v := range versions {
		r.spec.Versions = append(r.spec.Versions, crdVersion{Name: v, Served: true})
	}
	return plural + "." + groupName, r
}

func crds(live bool, add ...func(map[string]row[crdSpec])) table[crdSpec] {
	t := table[crdSpec]{rows: map[string]row[crdSpec]{}, known: true, live: live}
	for _, a := range add {
		a(t.rows)
	}
	return t
}

func withCRD(groupName, plural, uid string, generation int64, versions ...string) func(map[string]row[crdSpec]) {
	return func(rows map[string]row[crdSpec]) {
		name, r := crd(groupName, plural, uid, generation, versions...)
		rows[name] = r
	}
}

// services registers group versions; "group/version!" has a service of its own.
func services(live bool, gvs ...string) table[serviceSpec] {
	t := table[serviceSpec]{rows: map[string]row[serviceSpec]{}, known: true, live: live}
	for _, s := range gvs {
		text, remote := strings.CutSuffix(s, "!")
		gv, _ := schema.ParseGroupVersion(text)
		r := row[serviceSpec]{ready: true, spec: serviceSpec{Group: gv.Group, Version: gv.Version}}
		if remote {
			r.spec.Service = &struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			}{"ns", "svc"}
		}
		t.rows[serviceName(gv)] = r
	}
	return t
}

// names writes a Set as "resource.version.group", with ~ for stale and @ for
// aggregated, and !group/version for what failed.
func names(s Set) string {
	var all []string
	for _, r := range s.Resources {
		name := strings.TrimSuffix(r.GVR.Resource+"."+r.GVR.Version+"."+r.GVR.Group, ".")
		if r.Stale {
			name += "~"
		}
		if r.Aggregated {
			name += "@"
		}
		all = append(all, name)
	}
	failed := 0
	for gv := range s.Failed {
		failed++
		if failed == 1 {
			all = append(all, "!"+gv.String())
		}
	}
	return strings.Join(all, " ")
}

func TestJudge(t *testing.T) {
	pin := func(gr, version string) map[schema.GroupResource]string {
		return map[schema.GroupResource]string{schema.ParseGroupResource(gr): version}
	}
	type step struct {
		facts
		want string
	}
	for name, steps := range map[string][]step{
		"only list and watch, no subresources": {
			{facts{answer: says("v1: pods pods/status bindings- nodes")}, "nodes.v1 pods.v1"},
		},
		"sorted by group, then resource": {
			{facts{answer: says("v1: pods nodes", "batch/v1: jobs", "apps/v1: deployments")},
				"nodes.v1 pods.v1 deployments.v1.apps jobs.v1.batch"},
		},
		"preferred version first": {
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas")}, "hpas.v2.autoscaling"},
		},
		"preferred version cannot watch": {
			{facts{answer: says("autoscaling/v2: hpas-", "autoscaling/v1: hpas")}, "hpas.v1.autoscaling"},
		},
		"preferred version lacks it": {
			{facts{answer: says("batch/v1: jobs", "batch/v1beta1: cronjobs")}, "cronjobs.v1beta1.batch jobs.v1.batch"},
		},
		"pinned version": {
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas"), pins: pin("hpas.autoscaling", "v1")}, "hpas.v1.autoscaling"},
		},
		"pinned version is not served": {
			{facts{answer: says("autoscaling/v2: hpas"), pins: pin("hpas.autoscaling", "v9")}, "hpas.v2.autoscaling"},
		},
		"pin changes at run time": {
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas")}, "hpas.v2.autoscaling"},
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas"), pins: pin("hpas.autoscaling", "v1")}, "hpas.v1.autoscaling"},
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas")}, "hpas.v2.autoscaling"},
		},
		"pinned version does not answer at first": {
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1!"), pins: pin("hpas.autoscaling", "v1")}, "!autoscaling/v1"},
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas"), pins: pin("hpas.autoscaling", "v1")}, "hpas.v1.autoscaling"},
		},
		"events once": {
			{facts{answer: says("v1: events", "events.k8s.io/v1: events")}, "events.v1"},
		},
		"events pinned": {
			{facts{answer: says("v1: events", "events.k8s.io/v1: events"), pins: pin("events.events.k8s.io", "v1")}, "events.v1.events.k8s.io"},
		},
		"events both pinned": {
			{facts{answer: says("v1: events", "events.k8s.io/v1: events"),
				pins: map[schema.GroupResource]string{coreEvents: "v1", newEvents: "v1"}}, "events.v1"},
		},
		"events of one group": {
			{facts{answer: says("v1: pods", "events.k8s.io/v1: events")}, "pods.v1 events.v1.events.k8s.io"},
		},
		"events repinned and back": {
			{facts{answer: says("v1: events", "events.k8s.io/v1: events")}, "events.v1"},
			{facts{answer: says("v1: events", "events.k8s.io/v1: events"), pins: pin("events.events.k8s.io", "v1")}, "events.v1.events.k8s.io"},
			{facts{answer: says("v1: events", "events.k8s.io/v1: events")}, "events.v1"},
		},
		"failed version keeps its resources": {
			{facts{answer: says("apps/v1: deployments", "m/v1: pods")}, "deployments.v1.apps pods.v1.m@"},
			{facts{answer: says("apps/v1: deployments", "m/v1!")}, "deployments.v1.apps pods.v1.m~@ !m/v1"},
			{facts{answer: says("apps/v1: deployments", "m/v1: pods")}, "deployments.v1.apps pods.v1.m@"},
		},
		"failed for long, then gone": {
			{facts{answer: says("v1: pods", "m/v1: pods")}, "pods.v1 pods.v1.m@"},
			{facts{answer: says("v1: pods", "m/v1!"), now: start.Add(time.Hour)}, "pods.v1 pods.v1.m~@ !m/v1"},
			{facts{answer: says("v1: pods"), services: services(true, "v1"), now: start.Add(2 * time.Hour)}, "pods.v1"},
		},
		"failed preferred version is not left for another": {
			{facts{answer: says("g.io/v2: a", "g.io/v1: a")}, "a.v2.g.io@"},
			{facts{answer: says("g.io/v2!", "g.io/v1: a")}, "a.v2.g.io~@ !g.io/v2"},
		},
		"failed preferred version from the start": {
			{facts{answer: says("g.io/v2!", "g.io/v1: a")}, "a.v1.g.io@ !g.io/v2"},
			{facts{answer: says("g.io/v2: a", "g.io/v1: a")}, "a.v2.g.io@"},
		},
		"absent is not gone at once": {
			{facts{answer: says("apps/v1: a b"), crds: crds(true), services: services(true, "apps/v1")}, "a.v1.apps b.v1.apps"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), now: start}, "a.v1.apps b.v1.apps~"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), now: start.Add(confirmAfter - 1)}, "a.v1.apps b.v1.apps~"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), now: start.Add(confirmAfter)}, "a.v1.apps"},
		},
		"absent while its local APIService exists": {
			{facts{answer: says("v1: pods", "apps/v1: a"), crds: crds(true), services: services(true, "v1", "apps/v1")}, "pods.v1 a.v1.apps"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1", "apps/v1"), now: start}, "pods.v1 a.v1.apps~"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1", "apps/v1"), now: start.Add(time.Hour)}, "pods.v1 a.v1.apps~"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1"), now: start.Add(time.Hour)}, "pods.v1"},
		},
		"absent with nobody else to ask": {
			{facts{answer: says("v1: pods", "apps/v1: deployments")}, "pods.v1 deployments.v1.apps"},
			{facts{answer: says("v1: pods"), now: start}, "pods.v1 deployments.v1.apps~"},
			{facts{answer: says("v1: pods"), now: start.Add(confirmBlindAfter - 1)}, "pods.v1 deployments.v1.apps~"},
			{facts{answer: says("v1: pods"), now: start.Add(confirmBlindAfter)}, "pods.v1"},
		},
		"absent for a moment": {
			{facts{answer: says("v1: pods", "apps/v1: deployments")}, "pods.v1 deployments.v1.apps"},
			{facts{answer: says("v1: pods"), now: start}, "pods.v1 deployments.v1.apps~"},
			{facts{answer: says("v1: pods", "apps/v1: deployments"), now: start.Add(1)}, "pods.v1 deployments.v1.apps"},
			{facts{answer: says("v1: pods"), now: start.Add(time.Hour)}, "pods.v1 deployments.v1.apps~"},
		},
		"absence weighs less while a watch is down": {
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1"))}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(false), now: start}, "pods.v1 a.v1.g.io~"},
			{facts{answer: says("v1: pods"), crds: crds(false), now: start.Add(confirmAfter)}, "pods.v1 a.v1.g.io~"},
			{facts{answer: says("v1: pods"), crds: crds(false), now: start.Add(confirmBlindAfter)}, "pods.v1"},
		},
		"absent while servers differ": {
			{facts{answer: says("apps/v1: a b"), crds: crds(true), services: services(true, "apps/v1")}, "a.v1.apps b.v1.apps"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), mixed: true, now: start}, "a.v1.apps b.v1.apps"},
			{facts{answer: says("apps/v1: a c"), crds: crds(true), services: services(true, "apps/v1"), mixed: true, now: start.Add(time.Hour)}, "a.v1.apps b.v1.apps c.v1.apps"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), now: start.Add(time.Hour)}, "a.v1.apps b.v1.apps~ c.v1.apps~"},
			{facts{answer: says("apps/v1: a"), crds: crds(true), services: services(true, "apps/v1"), now: start.Add(time.Hour + confirmAfter)}, "a.v1.apps"},
		},
		"group absent while servers differ": {
			{facts{answer: says("v1: pods", "batch/v1: jobs"), crds: crds(true), services: services(true, "v1", "batch/v1")}, "pods.v1 jobs.v1.batch"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1"), mixed: true, now: start}, "pods.v1 jobs.v1.batch"},
			{facts{answer: says("v1: pods", "batch/v1: jobs"), crds: crds(true), services: services(true, "v1", "batch/v1"), now: start.Add(time.Hour)}, "pods.v1 jobs.v1.batch"},
		},
		"local APIService deleted": {
			{facts{answer: says("v1: pods", "batch/v1: jobs"), crds: crds(true), services: services(true, "v1", "batch/v1")}, "pods.v1 jobs.v1.batch"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1"), now: start}, "pods.v1 jobs.v1.batch~"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1"), now: start.Add(confirmAfter)}, "pods.v1"},
		},
		"CRD deleted while servers differ": {
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1"))}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1")), mixed: true}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(true), mixed: true}, "pods.v1"},
		},
		"preferred version of a server": {
			{facts{answer: says("autoscaling/v1: hpas"), crds: crds(true), services: services(true, "autoscaling/v1")}, "hpas.v1.autoscaling"},
			{facts{answer: says("autoscaling/v2: hpas", "autoscaling/v1: hpas"), crds: crds(true), services: services(true, "autoscaling/v1"), mixed: true, now: start}, "hpas.v1.autoscaling"},
			{facts{answer: says("autoscaling/v2: hpas"), crds: crds(true), services: services(true, "autoscaling/v1"), mixed: true, now: start}, "hpas.v1.autoscaling"},
			{facts{answer: says("autoscaling/v2: hpas"), crds: crds(true), services: services(true, "autoscaling/v2"), now: start}, "hpas.v1.autoscaling~"},
			{facts{answer: says("autoscaling/v2: hpas"), crds: crds(true), services: services(true, "autoscaling/v2"), now: start.Add(confirmAfter)}, "hpas.v2.autoscaling"},
		},
		"CRD deleted": {
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1"))}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(true)}, "pods.v1"},
		},
		"CRD exists, discovery lags for long": {
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1"))}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1")), now: start}, "pods.v1 a.v1.g.io~"},
			{facts{answer: says("v1: pods"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1")), now: start.Add(time.Hour)}, "pods.v1 a.v1.g.io~"},
		},
		"served before its CRD is known": {
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true), services: services(true, "v1")}, "pods.v1 a.v1.g.io@"},
			{facts{answer: says("v1: pods", "g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1")), services: services(true, "v1")}, "pods.v1 a.v1.g.io"},
			{facts{answer: says("v1: pods"), crds: crds(true), services: services(true, "v1")}, "pods.v1"},
		},
		"aggregated": {
			{facts{answer: says("v1: pods", "m.io/v1: a", "g.io/v1: a"), services: services(true, "v1", "m.io/v1!", "g.io/v1")},
				"pods.v1 a.v1.g.io a.v1.m.io@"},
		},
		"aggregated group left out of discovery": {
			{facts{answer: says("v1: pods", "m.io/v1: a"), services: services(true, "v1", "m.io/v1!")}, "pods.v1 a.v1.m.io@"},
			{facts{answer: says("v1: pods"), services: services(true, "v1", "m.io/v1!"), now: start}, "pods.v1 a.v1.m.io~@ !m.io/v1"},
			{facts{answer: says("v1: pods"), services: services(true, "v1", "m.io/v1!"), now: start.Add(time.Hour)}, "pods.v1 a.v1.m.io~@ !m.io/v1"},
			{facts{answer: says("v1: pods"), services: services(true, "v1"), now: start.Add(time.Hour)}, "pods.v1"},
		},
		"aggregated unknown without APIServices": {
			{facts{answer: says("apps/v1: deployments", "g.io/v1: a", "m.io/v1: b"), crds: crds(true, withCRD("g.io", "a", "u", 1, "v1"))},
				"deployments.v1.apps a.v1.g.io b.v1.m.io@"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var v verdict
			for i, s := range steps {
				s.prev, s.absentSince = v.set, v.absentSince
				if i > 0 {
					s.prevPins = steps[i-1].pins
				}
				v = judge(s.facts)
				if got := names(v.set); got != s.want {
					t.Fatalf("step %d: judge() =\n %s, want\n %s", i, got, s.want)
				}
			}
		})
	}
}

func TestJudgeFields(t *testing.T) {
	selectable := crds(true, withCRD("g.io", "as", "uid-1", 3, "v1"))
	r := selectable.rows["as.g.io"]
	r.spec.Names.ListKind = "ManyA"
	r.spec.Versions[0].SelectableFields = append(r.spec.Versions[0].SelectableFields, struct {
		JSONPath string `json:"jsonPath"`
	}{".spec.color"})
	selectable.rows["as.g.io"] = r
	a := answer{groups: []group{{name: "g.io", versions: []version{
		{name: "v1", resources: []served{{
			name: "as", kind: "A", singular: "a", shortNames: []string{"aa"}, categories: []string{"all"},
			verbs: []string{"list", "watch"}, namespaced: true,
		}}},
		{name: "v1beta1", err: errDown},
		{name: "v1alpha1", resources: []served{{name: "as", kind: "A", verbs: []string{"list", "watch"}}}},
	}}}}
	prev := Set{Resources: []Resource{{
		GVR: schema.GroupVersionResource{Group: "g.io", Version: "v1", Resource: "as"}, Versions: []string{"v1", "v1beta1"},
	}}}
	v := judge(facts{answer: a, crds: selectable, serverVersion: "v1.36.3", prev: prev, now: start})
	want := Set{
		Resources: []Resource{{
			GVR:  schema.GroupVersionResource{Group: "g.io", Version: "v1", Resource: "as"},
			Kind: "A", ListKind: "ManyA", Singular: "a", ShortNames: []string{"aa"}, Categories: []string{"all"},
			Namespaced: true, Verbs: []string{"list", "watch"}, Versions: []string{"v1", "v1beta1", "v1alpha1"},
			CRDUID: "uid-1", CRDGeneration: 3, SelectableFields: []string{".spec.color"},
		}},
		Failed:        map[schema.GroupVersion]error{{Group: "g.io", Version: "v1beta1"}: errDown},
		ServerVersion: "v1.36.3",
	}
	if diff := cmp.Diff(want, v.set, cmp.Comparer(func(a, b error) bool { return a == b })); diff != "" {
		t.Errorf("judge() differs (-want +got):\n%s", diff)
	}
	if _, ok := v.set.Get(schema.GroupResource{Group: "g.io", Resource: "as"}); !ok {
		t.Error("Get() did not find it")
	}
	if !v.set.Unknown(schema.GroupVersionResource{Group: "g.io", Version: "v1beta1", Resource: "x"}) {
		t.Error("Unknown() = false for a failed group version")
	}
}

func TestJudgeLag(t *testing.T) {
	one := withCRD("g.io", "a", "u", 1, "v1")
	for name, tt := range map[string]struct {
		facts
		want bool
	}{
		"settled":             {facts{answer: says("g.io/v1: a"), crds: crds(true, one)}, false},
		"established CRD":     {facts{answer: says("v1: pods"), crds: crds(true, one)}, true},
		"new version of CRD":  {facts{answer: says("g.io/v1: a"), crds: crds(true, withCRD("g.io", "a", "u", 2, "v1", "v2"))}, true},
		"watch is down":       {facts{answer: says("v1: pods"), crds: crds(false, one)}, false},
		"service has no data": {facts{answer: says("v1: pods"), services: services(true, "m/v1!")}, true},
		"service is stale":    {facts{answer: says("v1: pods", "m/v1!"), services: services(true, "m/v1!")}, true},
		"service answers":     {facts{answer: says("v1: pods", "m/v1: a"), services: services(true, "m/v1!")}, false},
		"deleted CRD": {facts{answer: says("g.io/v1: a"), crds: crds(true),
			prev: judge(facts{answer: says("g.io/v1: a"), crds: crds(true, one)}).set}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tt.now = start
			if got := judge(tt.facts).lagging; got != tt.want {
				t.Errorf("lagging = %v, want %v", got, tt.want)
			}
		})
	}
}

// What the watches know of and discovery does not serve is unknown, not gone,
// even if it was never served before: the API server may just be starting.
func TestUnknown(t *testing.T) {
	gvr := func(s string) schema.GroupVersionResource {
		out, _ := schema.ParseResourceArg(s)
		return *out
	}
	known := facts{
		answer:   says("v1: pods", "s.io/v1!", "g.io/v1: as"),
		crds:     crds(true, withCRD("g.io", "as", "u", 1, "v1"), withCRD("h.io", "bs", "u", 1, "v1")),
		services: services(true, "v1", "g.io/v1", "h.io/v1", "s.io/v1!", "m.io/v1!"),
	}
	blind := facts{answer: says("v1: pods"), since: start, now: start}
	later := blind
	later.now = start.Add(confirmBlindAfter)
	down := known
	down.crds.live, down.services.live, down.prev = false, false, Set{Resources: []Resource{{}}}
	for name, tt := range map[string]struct {
		facts
		gvr  string
		want bool
	}{
		"CRD not served, watch down":        {down, "bs.v1.h.io", true},
		"service not there, watch down":     {down, "ms.v1.m.io", true},
		"nobody knows it, watches now down": {down, "xs.v1.x.io", false},
		"CRD not served":                    {known, "bs.v1.h.io", true},
		"CRD's other version":               {known, "bs.v2.h.io", false},
		"service not in discovery":          {known, "ms.v1.m.io", true},
		"service stale":                     {known, "ss.v1.s.io", true},
		"nobody knows it":                   {known, "xs.v1.x.io", false},
		"first answer, no watches":          {blind, "xs.v1.x.io", true},
		"second answer, no watches":         {later, "xs.v1.x.io", false},
		"served resources are known":        {known, "as.v1.g.io", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(tt.facts).set.Unknown(gvr(tt.gvr)); got != tt.want {
				t.Errorf("Unknown(%s) = %v, want %v", tt.gvr, got, tt.want)
			}
		})
	}
}

// A CRD that is deleted while discovery still serves it keeps its identity,
// and one created anew under its name has a new one.
func TestJudgeCRDIdentity(t *testing.T) {
	a := says("g.io/v1: a")
	uid := func(v verdict) string { return v.set.Resources[0].CRDUID }
	first := judge(facts{answer: a, crds: crds(true, withCRD("g.io", "a", "old", 1, "v1"))})
	lag := judge(facts{answer: a, crds: crds(true), prev: first.set})
	if uid(lag) != "old" {
		t.Errorf("CRDUID = %q while discovery lags, want old", uid(lag))
	}
	second := judge(facts{answer: a, crds: crds(true, withCRD("g.io", "a", "new", 1, "v1")), prev: lag.set})
	if uid(second) != "new" || second.set.Equal(first.set) {
		t.Errorf("CRDUID = %q after recreation, want new", uid(second))
	}
	third := judge(facts{answer: a, crds: crds(true, withCRD("g.io", "a", "new", 2, "v1")), prev: second.set})
	if third.set.Equal(second.set) {
		t.Error("a new CRD generation makes no difference")
	}
}
