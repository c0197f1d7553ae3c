package e2e

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/test/e2e/harness"
)

// orderedRules are the built-in rules with indexes over amounts and times.
const orderedRules = `
- match: [leases.coordination.k8s.io, events, events.events.k8s.io]
  watch: false
- match: [pods]
  indexes:
    node: spec.nodeName
    phase: status.phase
    memory: "spec.containers[*].resources.requests.memory"
    started: status.startTime
- match: [deployments.apps]
  indexes: {replicas: spec.replicas}
- match: ["*"]
`

// orderedQuestion is one that an index is expected to help with.
type orderedQuestion struct {
	question
	index, sortedBy string
}

// TestOrderedIndexes asks for ranges, prefixes and first pages of sorted lists,
// and compares with the API server's own objects and with the plan.
func TestOrderedIndexes(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: orderedRules})
	i.WaitLive(t, syncTime)
	told := newTruth(t, c, i)
	told.anew()
	pods, err := told.of("pods")
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range orderedQuestions(pods) {
		q.check(t, i, told)
		q.checkPlan(t, i)
	}
}

func orderedQuestions(pods []harness.Object) []orderedQuestion {
	created := middle(pods, "metadata", "creationTimestamp")
	started := middle(pods, "status", "startTime")
	node := middle(pods, "spec", "nodeName")
	prefix := node[:len(node)-1]
	at := func(o harness.Object, path ...string) time.Time {
		stamp, _ := time.Parse(time.RFC3339, str(o, path...))
		return stamp
	}
	limit := func(text string) time.Time { stamp, _ := time.Parse(time.RFC3339, text); return stamp }
	requests := func(pass func(resource.Quantity) bool) func(harness.Object) bool {
		return func(o harness.Object) bool {
			return slices.ContainsFunc(containers(o), func(c any) bool {
				text := str(c, "resources", "requests", "memory")
				return text != "" && pass(resource.MustParse(text))
			})
		}
	}
	over := requests(func(q resource.Quantity) bool { return q.Cmp(resource.MustParse("0.125Gi")) > 0 })
	upTo := requests(func(q resource.Quantity) bool { return q.Cmp(resource.MustParse("0.125Gi")) <= 0 })
	replicas := func(o harness.Object) int64 {
		q := resource.MustParse(str(o, "spec", "replicas"))
		return q.Value()
	}
	younger := func(a, b harness.Object) int {
		return at(b, "metadata", "creationTimestamp").Compare(at(a, "metadata", "creationTimestamp"))
	}
	const memory = `c.?resources.?requests.?memory.orValue("0")`
	podsWhere := func(index, expression string, pass func(harness.Object) bool) orderedQuestion {
		return orderedQuestion{question{route: podsRoute, form: filter(expression), want: where(pass, "pods")}, index, ""}
	}
	return []orderedQuestion{
		podsWhere("metadata.creationTimestamp", fmt.Sprintf(`timestamp(object.metadata.creationTimestamp) > timestamp(%q)`, created),
			func(o harness.Object) bool { return at(o, "metadata", "creationTimestamp").After(limit(created)) }),
		podsWhere("metadata.creationTimestamp", fmt.Sprintf(`age(object) >= now - timestamp(%q)`, created),
			func(o harness.Object) bool { return !at(o, "metadata", "creationTimestamp").After(limit(created)) }),
		podsWhere("started", fmt.Sprintf(`has(object.status.startTime) && timestamp(object.status.startTime) <= timestamp(%q)`, started),
			func(o harness.Object) bool {
				return str(o, "status", "startTime") != "" && !at(o, "status", "startTime").After(limit(started))
			}),
		podsWhere("memory", `object.spec.containers.exists(c, quantity(`+memory+`).isGreaterThan(quantity("0.125Gi")))`, over),
		podsWhere("memory", `object.spec.containers.exists(c, has(c.resources.requests) && quantity(c.resources.requests.memory).compareTo(quantity("131072Ki")) <= 0)`, upTo),
		podsWhere("node", `object.?spec.nodeName.orValue("").startsWith("`+prefix+`")`,
			func(o harness.Object) bool { return strings.HasPrefix(str(o, "spec", "nodeName"), prefix) }),
		{question{deployRoute, filter(`object.spec.replicas > 1`), where(func(o harness.Object) bool { return replicas(o) > 1 }, "deployments.apps"), false}, "replicas", ""},
		{question{deployRoute, filter(`object.spec.replicas in [2, 3]`), where(func(o harness.Object) bool { return replicas(o) == 2 || replicas(o) == 3 }, "deployments.apps"), false}, "replicas", ""},
		{question{deployRoute, []string{"sort", "-spec.replicas", "limit", "3"},
			ordered(3, func(a, b harness.Object) int { return cmp.Compare(replicas(b), replicas(a)) }, everything, "deployments.apps"), true}, "", "replicas"},
		{question{podsRoute, []string{"sort", "status.phase", "limit", "4"},
			ordered(4, func(a, b harness.Object) int {
				return strings.Compare(str(a, "status", "phase"), str(b, "status", "phase"))
			}, everything, "pods"), true}, "", "phase"},
		{question{podsRoute, []string{"sort", "-metadata.creationTimestamp", "limit", "5"}, ordered(5, younger, everything, "pods"), true}, "", "metadata.creationTimestamp"},
		{question{podsRoute, []string{"sort", "-metadata.creationTimestamp", "limit", "2", "namespace", "shop"},
			ordered(2, younger, func(o harness.Object) bool { return o.Namespace() == "shop" }, "pods"), true}, "namespace", "metadata.creationTimestamp"},
	}
}

// middle is the middle one of the values at a path.
func middle(objects []harness.Object, path ...string) string {
	var all []string
	for _, o := range objects {
		if text := str(o, path...); text != "" {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// checkPlan compares how the question is answered with what is expected.
func (q orderedQuestion) checkPlan(t *testing.T, i *harness.Informerd) {
	t.Helper()
	var plan struct {
		Items []struct {
			Indexes  []string
			SortedBy string
			Advice   []any
		}
	}
	target := q.url() + "&" + url.Values{"explain": {"true"}}.Encode()
	if err := i.Read(target, &plan); err != nil {
		t.Fatal(err)
	}
	p := plan.Items[0]
	if q.index != "" && !slices.Contains(p.Indexes, q.index) || p.SortedBy != q.sortedBy || len(p.Advice) > 0 {
		t.Errorf("%s: %+v, want index %q and order %q", q.url(), p, q.index, q.sortedBy)
	}
}
