package plan_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/cmd/informerd/plan"
	"github.com/informerd/informerd/discovery"
)

var (
	managed = config.DefaultDrop()
	// copies hold a second copy of the whole object, each under the name of a program.
	copies = []string{
		"metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']", "metadata.annotations['kapp.k14s.io/original']",
		"metadata.annotations['kapp.k14s.io/original-diff']", "metadata.annotations['objectset.rio.cattle.io/applied']",
		"metadata.annotations['banzaicloud.com/last-applied']", "metadata.annotations[*]",
	}
)

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		name, rules string // the built-in ones if empty
		resource    discovery.Resource
		want        cache.Spec // of what the rules decide
		rule        int
	}{
		{"left out", "", namespaced("leases.v1.coordination.k8s.io"), cache.Spec{}, 0},
		{"default pods", "", namespaced("pods.v1"), cache.Spec{
			Watch: true, Drop: managed,
			Indexes: map[string]string{"node": "spec.nodeName", "phase": "status.phase", "image": "spec.containers[*].image"},
		}, 2},
		{"default rest", "", namespaced("deployments.v1.apps"), cache.Spec{Watch: true, Drop: managed}, 3},
		{"default secrets", "", namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append(managed, copies...), Redact: []string{"data", "stringData"},
		}, 1},
		{"columns", `[{match: [pods], columns: [[spec.nodeName], [status.phase, spec.nodeName]]}]`, namespaced("pods.v1"), cache.Spec{
			Watch: true, Drop: managed, Columns: cache.ColumnRules{Pinned: [][]string{{"spec.nodeName"}, {"status.phase", "spec.nodeName"}}},
		}, 0},
		{"no columns", `[{match: [pods], columns: none}]`, namespaced("pods.v1"), cache.Spec{Watch: true, Drop: managed, Columns: cache.ColumnRules{None: true}}, 0},
		{"secrets by a glob", `[{match: ["*"]}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append(managed, copies...), Redact: []string{"data", "stringData"},
		}, 0},
		{"a glob cannot turn redaction off", `[{match: ["secret*"], redact: [], drop: []}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: copies, Redact: []string{"data", "stringData"},
		}, 0},
		{"a glob can redact more", `[{match: ["*"], redact: [metadata.annotations, data]}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append(managed, copies...), Redact: []string{"metadata.annotations", "data", "stringData"},
		}, 0},
		{"secrets by name without redact", `[{match: [secrets], drop: []}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: copies, Redact: []string{"data", "stringData"},
		}, 0},
		{"secrets in full", `[{match: [secrets], redact: []}]`, namespaced("secrets.v1"), cache.Spec{Watch: true, Drop: managed}, 0},
		{"secrets less one key", `[{match: [secrets.v1], redact: ["data['tls.key']"]}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append(managed, copies...), Redact: []string{"data['tls.key']"},
		}, 0},
		{"secrets without data", `[{match: [secrets], redact: [], drop: [data]}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append([]string{"data"}, copies...),
		}, 0},
		{"an index of what is redacted", `[{match: ["*"], indexes: {key: data.key, type: type}}]`, namespaced("secrets.v1"), cache.Spec{
			Watch: true, Drop: append(managed, copies...), Redact: []string{"data", "stringData"},
			Indexes: map[string]string{"type": "type"},
		}, 0},
		{"other secrets", `[{match: ["*"]}]`, namespaced("secrets.v1.example.com"), cache.Spec{Watch: true, Drop: managed}, 0},
		{"selection", `[{match: ["*.apps"], namespaces: ["shop-*"], labelSelector: a=b, fieldSelector: c=d, shardSelector: "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')", redact: [spec.x]}]`,
			namespaced("deployments.v1.apps"), cache.Spec{
				Watch: true, Drop: managed, Redact: []string{"spec.x"},
				Namespaces: []string{"shop-*"}, LabelSelector: "a=b", FieldSelector: "c=d", ShardSelector: "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')",
			}, 0},
		{"namespaces mean nothing at cluster scope", `[{match: [nodes], namespaces: ["shop-*"]}]`,
			discovery.Resource{GVR: gvr("nodes.v1"), Versions: []string{"v1"}}, cache.Spec{Watch: true, Drop: managed}, 0},
		{"no rule", `[{match: [pods]}]`, namespaced("nodes.v1"), cache.Spec{}, -1},
		{"first rule wins", `[{match: [nodes, pods], drop: []}, {match: ["*"]}]`, namespaced("pods.v1"), cache.Spec{Watch: true}, 0},
		{"version not served", `[{match: [hpas.v3.autoscaling], watch: false}, {match: ["*"]}]`,
			namespaced("hpas.v2.autoscaling", "v1"), cache.Spec{Watch: true, Drop: managed}, 1},
		{"version served, not yet reported", `[{match: [hpas.v1.autoscaling], watch: false}, {match: ["*"]}]`,
			namespaced("hpas.v2.autoscaling", "v1"), cache.Spec{}, 0},
		{"selectable fields", `[{match: ["*"], indexes: {tint: spec.color, host: .spec.a}}]`, discovery.Resource{
			GVR: gvr("widgets.v1.example.com"), Kind: "Widget", Namespaced: true, Versions: []string{"v1"},
			SelectableFields: []string{".spec.color", ".spec.size", ".spec..bad", ".metadata.managedFields"},
		}, cache.Spec{
			Kind: "Widget", Watch: true, Drop: managed,
			Indexes: map[string]string{"tint": "spec.color", "host": "spec.a", "spec.size": "spec.size"},
		}, 0},
		{"a selectable field of a taken name", `[{match: ["*"], indexes: {color: spec.color}}]`, discovery.Resource{
			GVR: gvr("widgets.v1.example.com"), Namespaced: true, Versions: []string{"v1"}, SelectableFields: []string{".color"},
		}, cache.Spec{Watch: true, Drop: managed, Indexes: map[string]string{"color": "spec.color"}}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := plan.Choose(rules(t, test.rules), "c", []discovery.Resource{test.resource})
			if len(got) != 1 {
				t.Fatalf("Choose() = %v", got)
			}
			want := test.want
			want.Resource = cache.Resource{Cluster: "c", GVR: test.resource.GVR}
			want.Namespaced = test.resource.Namespaced
			if diff := cmp.Diff(want, got[0].Spec, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if got[0].Rule != test.rule {
				t.Errorf("rule = %d, want %d", got[0].Rule, test.rule)
			}
		})
	}
}

// Rules are shared by all specs made of them, and live longer than a reload.
func TestChooseLeavesRulesAlone(t *testing.T) {
	r, before := rules(t, ""), rules(t, "")
	plan.Choose(r, "c", []discovery.Resource{namespaced("secrets.v1"), namespaced("pods.v1")})
	if diff := cmp.Diff(before, r); diff != "" {
		t.Errorf("rules changed (-before +after):\n%s", diff)
	}
}

func TestChooseCarriesIdentity(t *testing.T) {
	r := discovery.Resource{
		GVR: gvr("widgets.v1.example.com"), Kind: "Widget", Singular: "widget", ShortNames: []string{"wd"},
		Namespaced: true, Aggregated: true, CRDUID: "u", CRDGeneration: 3, Versions: []string{"v1"},
	}
	want := cache.Spec{
		Resource: cache.Resource{Cluster: "c", GVR: r.GVR}, Kind: "Widget", Singular: "widget", ShortNames: []string{"wd"},
		Namespaced: true, Watch: true, Drop: managed, Aggregated: true, CRDUID: "u", CRDGeneration: 3,
	}
	got := plan.Specs(plan.Choose(rules(t, ""), "c", []discovery.Resource{r}))
	if diff := cmp.Diff([]cache.Spec{want}, got); diff != "" {
		t.Errorf("Specs() (-want +got):\n%s", diff)
	}
}

func TestPins(t *testing.T) {
	r := rules(t, `[{match: [a.v1.x, "*.v1beta1.y", c.v9.x, pods.v1]}, {match: ["*"]}]`)
	got := plan.Pins(r, []discovery.Resource{
		namespaced("a.v2.x", "v1"), namespaced("b.v1.y", "v1beta1"), namespaced("c.v1.x"), namespaced("d.v1.x"),
	})
	want := map[schema.GroupResource]string{{Group: "x", Resource: "a"}: "v1", {Group: "y", Resource: "b"}: "v1beta1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Pins() (-want +got):\n%s", diff)
	}
	want = map[schema.GroupResource]string{
		{Group: "x", Resource: "a"}: "v1", {Group: "x", Resource: "c"}: "v9", {Resource: "pods"}: "v1",
	}
	if diff := cmp.Diff(want, plan.LiteralPins(r)); diff != "" {
		t.Errorf("LiteralPins() (-want +got):\n%s", diff)
	}
}

func TestSaved(t *testing.T) {
	widget := discovery.Resource{
		GVR: gvr("widgets.v1.example.com"), Kind: "Widget", Singular: "widget", ShortNames: []string{"wd"},
		Namespaced: true, Versions: []string{"v1"}, CRDUID: "u", CRDGeneration: 3, SelectableFields: []string{"spec.size"},
	}
	spec := plan.Specs(plan.Choose(rules(t, `[{match: ["*"], indexes: {color: spec.color}}]`), "c", []discovery.Resource{widget}))[0]
	other := spec
	other.Cluster = "other"
	got := plan.Saved("c", []cache.Saved{{Spec: spec}, {Spec: other}})
	if diff := cmp.Diff([]discovery.Resource{widget}, got); diff != "" {
		t.Errorf("Saved() (-want +got):\n%s", diff)
	}
}

func TestMerge(t *testing.T) {
	known := []discovery.Resource{namespaced("a.v1.x"), namespaced("b.v1.y"), namespaced("c.v2.z"), namespaced("d.v1")}
	failed := map[schema.GroupVersion]error{
		{Group: "y", Version: "v1"}: errors.New("503"),
		{Group: "z", Version: "v2"}: errors.New("503"),
	}
	for _, test := range []struct {
		name string
		set  discovery.Set
		want []discovery.Resource
	}{
		{"all gone", discovery.Set{}, nil},
		{"unknown is not gone", discovery.Set{Failed: failed}, []discovery.Resource{known[1], known[2]}},
		{"set wins", discovery.Set{Resources: []discovery.Resource{namespaced("a.v2.x"), namespaced("e.v1")}},
			[]discovery.Resource{namespaced("e.v1"), namespaced("a.v2.x")}},
		{"another version while ours is unknown", discovery.Set{Resources: []discovery.Resource{namespaced("c.v1.z")}, Failed: failed},
			[]discovery.Resource{known[1], known[2]}},
		{"provisional", discovery.Set{Provisional: true, Resources: []discovery.Resource{namespaced("a.v2.x")}},
			[]discovery.Resource{known[3], namespaced("a.v2.x"), known[1], known[2]}},
		{"pending", discovery.Set{Pending: []schema.GroupVersionResource{known[1].GVR}}, []discovery.Resource{known[1]}},
		{"the set's own word on an unknown group", discovery.Set{
			Resources: []discovery.Resource{{GVR: known[1].GVR, Kind: "B", Stale: true}}, Failed: failed,
		}, []discovery.Resource{{GVR: known[1].GVR, Kind: "B", Stale: true}, known[2]}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.Merge(known, test.set), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Merge() (-want +got):\n%s", diff)
			}
		})
	}
}

// A CRD that cannot be read any more does not restart what it defines.
func TestMergeRemembersDefinitions(t *testing.T) {
	known := discovery.Resource{GVR: gvr("widgets.v1.example.com"), CRDUID: "u", CRDGeneration: 3, SelectableFields: []string{".spec.a"}}
	unread := discovery.Resource{GVR: known.GVR, Kind: "Widget", Aggregated: true}
	want := known
	want.Kind = "Widget"
	got := plan.Merge([]discovery.Resource{known}, discovery.Set{Resources: []discovery.Resource{unread}})
	if diff := cmp.Diff([]discovery.Resource{want}, got); diff != "" {
		t.Errorf("Merge() of an unread definition (-want +got):\n%s", diff)
	}
	changed := discovery.Resource{GVR: known.GVR, CRDUID: "u", CRDGeneration: 4}
	got = plan.Merge([]discovery.Resource{known}, discovery.Set{Resources: []discovery.Resource{changed}})
	if diff := cmp.Diff([]discovery.Resource{changed}, got); diff != "" {
		t.Errorf("Merge() of a changed definition (-want +got):\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	r := rules(t, `[{match: [leases, pods.v2]}, {match: [deployments.apps, zebras]}, {match: ["*.zoo"]}, {match: [events.events.k8s.io, "*"]}]`)
	got := plan.Warnings(r, []discovery.Resource{
		namespaced("leases.v1.coordination.k8s.io"), namespaced("pods.v1"), namespaced("deployments.v1.apps"), namespaced("events.v1"),
	})
	want := []plan.Warning{
		{Rule: 0, Message: "leases is not served; did you mean leases.coordination.k8s.io?"},
		{Rule: 0, Message: "pods is not served in version v2, but in v1"},
		{Rule: 0, Message: "selects nothing: leases, pods.v2"},
		{Rule: 2, Message: "selects nothing: *.zoo"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Warnings() (-want +got):\n%s", diff)
	}
}

func rules(t *testing.T, yaml string) []config.Rule {
	t.Helper()
	if yaml == "" {
		return config.Default().Resources
	}
	c, err := config.Parse("rules", []byte("resources: "+yaml))
	if err != nil {
		t.Fatal(err)
	}
	return c.Resources
}

// gvr reads pods.v1 or deployments.v1.apps.
func gvr(name string) schema.GroupVersionResource {
	if full, _ := schema.ParseResourceArg(name); full != nil {
		return *full
	}
	gr := schema.ParseGroupResource(name)
	return schema.GroupVersionResource{Version: gr.Group, Resource: gr.Resource}
}

// namespaced is a resource served in the version of its name and in others.
func namespaced(name string, others ...string) discovery.Resource {
	g := gvr(name)
	return discovery.Resource{GVR: g, Namespaced: true, Versions: append([]string{g.Version}, others...)}
}
