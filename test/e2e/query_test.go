package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/informerd/informerd/cache/health"
	"github.com/informerd/informerd/test/e2e/harness"
)

// question is one URL and what the answer must be.
type question struct {
	route   string
	form    []string // parameters, in pairs
	want    func(*truth) ([]string, error)
	ordered bool // the order counts
}

func (q question) url() string {
	if len(q.form) == 0 {
		return q.route
	}
	v := url.Values{}
	for i := 0; i+1 < len(q.form); i += 2 {
		v.Add(q.form[i], q.form[i+1])
	}
	return q.route + "?" + v.Encode()
}

const (
	podsRoute   = "/v1/resources/pods/objects"
	deployRoute = "/v1/resources/deployments.apps/objects"
	queuesRoute = "/v1/resources/queues.messaging.example.com/objects"
	kindsRoute  = "/v1/query"
)

// asked is the same question in several forms.
func asked(route string, want func(*truth) ([]string, error), forms ...[]string) []question {
	var all []question
	for _, form := range forms {
		all = append(all, question{route: route, form: form, want: want})
	}
	return all
}

func filter(expression string, more ...string) []string {
	return append([]string{"filter", expression}, more...)
}
func fields(selector string, more ...string) []string {
	return append([]string{"fieldSelector", selector}, more...)
}
func labelled(selector string, more ...string) []string {
	return append([]string{"labelSelector", selector}, more...)
}

const shopImages = "registry.example.com/shop/"

func selections() []question {
	phase := func(p string) func(harness.Object) bool {
		return func(o harness.Object) bool { return str(o, "status", "phase") == p }
	}
	running := phase("Running")
	inShop := func(o harness.Object) bool { return o.Namespace() == "shop" }
	var all []question
	all = append(all, asked(podsRoute, where(phase("Pending"), "pods"),
		filter(`object.status.phase == "Pending"`), fields("status.phase=Pending"), fields("status.phase in (Pending)"),
		[]string{"index", "phase:Pending"}, filter(`object["status"]["phase"] in ["Pending", "Unheard-of"]`),
		filter(`object.status.phase.startsWith("Pend")`), filter(`object.status.phase.matches("^P[a-z]+g$")`))...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool { return !running(o) }, "pods"),
		filter(`object.status.phase != "Running"`), fields("status.phase!=Running"), fields("status.phase notin (Running)"),
		filter(`!(object.status.phase == "Running")`))...)
	all = append(all, asked(podsRoute, where(inShop, "pods"),
		[]string{"namespace", "shop"}, []string{"namespace", "sh?p"}, filter(`object.metadata.namespace == "shop"`), fields("metadata.namespace=shop"))...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool { return str(o, "spec", "nodeName") == "" }, "pods"),
		filter(`!has(object.spec.nodeName)`), fields("!spec.nodeName"), fields("spec.nodeName="), filter(`object.?spec.nodeName.orValue("") == ""`))...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool {
		return slices.ContainsFunc(images(o), func(i string) bool { return strings.HasPrefix(i, shopImages) })
	}, "pods"),
		filter(`object.spec.containers.exists(c, c.image.startsWith("`+shopImages+`"))`),
		filter(`object.spec.containers.map(c, c.image).filter(i, i.contains("/shop/")).size() > 0`))...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool {
		return slices.Contains(images(o), "registry.example.com/mirror/redis:8.0.1")
	}, "pods"),
		filter(`object.spec.containers.exists(c, c.image == "registry.example.com/mirror/redis:8.0.1")`),
		fields("spec.containers[*].image=registry.example.com/mirror/redis:8.0.1"),
		[]string{"index", "image:registry.example.com/mirror/redis:8.0.1"})...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool {
		sum, _ := requested(o, "memory")
		return sum.Cmp(resource.MustParse("1Gi")) > 0
	}, "pods"),
		filter(`object.spec.containers.map(c, quantity(c.?resources.?requests.?memory.orValue("0")).asApproximateFloat()).sum() > quantity("1Gi").asApproximateFloat()`))...)
	all = append(all, asked(podsRoute, where(func(o harness.Object) bool {
		return running(o) && len(o.Labels()) > 0 && o.Labels()["app.kubernetes.io/name"] == "cart"
	}, "pods"),
		filter(`object.status.phase == "Running" && object.?metadata.?labels["app.kubernetes.io/name"].orValue("") == "cart"`),
		labelled("app.kubernetes.io/name=cart", "fieldSelector", "status.phase=Running"),
		labelled("app.kubernetes.io/name in (cart)", "filter", `object.status.phase == "Running"`))...)
	all = append(all, asked(deployRoute, where(func(o harness.Object) bool {
		return str(o, "status", "unavailableReplicas") != ""
	}, "deployments.apps"),
		filter(`object.?status.unavailableReplicas.orValue(0) > 0`), fields("status.unavailableReplicas"),
		filter(`has(object.status.unavailableReplicas)`))...)
	all = append(all, asked(deployRoute, where(func(o harness.Object) bool {
		n, _ := valueAt(o, "spec", "replicas").(json.Number)
		return n == "2" || n == "3"
	}, "deployments.apps"),
		filter(`object.spec.replicas >= 2 && object.spec.replicas <= 3`), fields("spec.replicas in (2,3)"), filter(`object.spec.replicas in [2, 3]`))...)
	all = append(all, asked(queuesRoute, where(func(o harness.Object) bool { return str(o, "spec", "engine") == "kafka" }, "queues.messaging.example.com"),
		fields("spec.engine=kafka"), labelled("engine=kafka"), []string{"index", "spec.engine:kafka"}, filter(`object.spec.engine == "kafka"`))...)
	all = append(all, asked(deployRoute, where(func(o harness.Object) bool { return o.Labels()["app.kubernetes.io/part-of"] == "payments" }, "deployments.apps"),
		fields("metadata.labels['app.kubernetes.io/part-of']=payments"), []string{"index", "label:app.kubernetes.io/part-of=payments"},
		filter(`object.metadata.labels["app.kubernetes.io/part-of"] == "payments"`))...)
	all = append(all, asked(podsRoute, where(everything, "pods"),
		nil, filter(`age(object) >= duration("0s")`), filter(`timestamp(object.metadata.creationTimestamp) <= now`),
		[]string{"output", "json", "pretty", "true"}, []string{"view", "metadata"})...)
	return all
}

func manyKinds() []question {
	partOf := func(o harness.Object) bool { return o.Labels()["app.kubernetes.io/part-of"] == "shop" }
	custom := func(o harness.Object) bool { return strings.HasSuffix(str(o, "apiVersion"), ".example.com/v1") }
	deleting := func(o harness.Object) bool { return str(o, "metadata", "deletionTimestamp") != "" }
	var all []question
	all = append(all, asked(kindsRoute, where(everything), nil, []string{"resources", "*"}, []string{"view", "metadata"}, []string{"fields", "metadata.namespace,metadata.name"})...)
	all = append(all, asked(kindsRoute, where(partOf), labelled("app.kubernetes.io/part-of=shop"),
		filter(`object.?metadata.?labels["app.kubernetes.io/part-of"].orValue("") == "shop"`))...)
	all = append(all, asked(kindsRoute, where(func(o harness.Object) bool { return o.Namespace() == "payments" }), []string{"namespace", "payments"})...)
	all = append(all, asked(kindsRoute, where(deleting), filter(`has(object.metadata.deletionTimestamp)`), fields("metadata.deletionTimestamp"))...)
	all = append(all, asked(kindsRoute, where(everything, "pods", "services", "nodes"), []string{"resources", "po,svc,nodes"}, []string{"resources", "pods,services,node?"})...)
	all = append(all, asked(kindsRoute, where(everything, "deployments.apps", "daemonsets.apps", "statefulsets.apps", "replicasets.apps", "controllerrevisions.apps"),
		[]string{"resources", "*.apps"}, []string{"resources", "*.v1.apps"})...)
	all = append(all, asked(kindsRoute, where(custom), filter(`object.apiVersion.endsWith(".example.com/v1")`))...)
	return all
}

func shapes() []question {
	text := func(p ...string) func(a, b harness.Object) int {
		return func(a, b harness.Object) int { return strings.Compare(str(a, p...), str(b, p...)) }
	}
	memory := func(o harness.Object) (resource.Quantity, bool) { return requested(o, "memory") }
	cpu := func(o harness.Object) (resource.Quantity, bool) { return requested(o, "cpu") }
	replicas := func(o harness.Object) (resource.Quantity, bool) {
		return resource.MustParse(str(o, "spec", "replicas")), true
	}
	inNamespaceByImage := func(o harness.Object) (keys []string) {
		for _, i := range images(o) {
			keys = append(keys, o.Namespace()+"|"+i)
		}
		return keys
	}
	return []question{
		{podsRoute, []string{"sort", "metadata.name"}, ordered(0, text("metadata", "name"), everything, "pods"), true},
		{podsRoute, []string{"sort", "-metadata.name", "limit", "5"}, ordered(5, func(a, b harness.Object) int { return text("metadata", "name")(b, a) }, everything, "pods"), true},
		{podsRoute, []string{"sort", "metadata.creationTimestamp"}, ordered(0, text("metadata", "creationTimestamp"), everything, "pods"), true},
		{kindsRoute, []string{"sort", "kind,metadata.name"}, ordered(0, func(a, b harness.Object) int {
			if d := text("kind")(a, b); d != 0 {
				return d
			}
			return text("metadata", "name")(a, b)
		}, everything), true},
		{podsRoute, []string{"groupBy", "metadata.namespace"}, groups(by(path("metadata.namespace")), one, "pods"), false},
		{podsRoute, []string{"groupBy", "metadata.namespace,status.phase"}, groups(by(path("metadata.namespace"), path("status.phase")), one, "pods"), false},
		{podsRoute, []string{"groupBy", "spec.nodeName"}, groups(by(path("spec.nodeName")), one, "pods"), false},
		{podsRoute, []string{"groupBy", "metadata.namespace,spec.containers[*].image"}, groups(inNamespaceByImage, one, "pods"), false},
		{podsRoute, []string{"groupBy", "metadata.namespace", "agg", "sum(spec.containers[*].resources.requests.cpu)"}, groups(by(path("metadata.namespace")), cpu, "pods"), false},
		{podsRoute, []string{"groupBy", "spec.nodeName", "agg", "sum(spec.containers[*].resources.requests.memory)"}, groups(by(path("spec.nodeName")), memory, "pods"), false},
		{deployRoute, []string{"agg", "sum(spec.replicas)"}, groups(func(harness.Object) []string { return []string{""} }, replicas, "deployments.apps"), false},
		{podsRoute, []string{"facets", "status.phase,spec.containers[*].image"}, facets("pods", "status.phase", "spec.containers[*].image"), false},
		{podsRoute, []string{"facets", "spec.nodeName", "limit", "2", "sort", "metadata.name"}, facets("pods", "spec.nodeName"), false},
		{kindsRoute, []string{"facets", "kind,metadata.namespace", "limit", "1"}, facets("", "kind", "metadata.namespace"), false},
		{kindsRoute, []string{"groupBy", "kind"}, groups(by(path("kind")), one), false},
		{kindsRoute, []string{"groupBy", "apiVersion,kind", "resources", "*.apps"}, groups(by(path("apiVersion"), path("kind")), one, "deployments.apps", "daemonsets.apps", "statefulsets.apps", "replicasets.apps", "controllerrevisions.apps"), false},
	}
}

// documented are the expectations of the questions in docs/query.md.
func documented(c *harness.Cluster, i *harness.Informerd) map[string]func(*truth) ([]string, error) {
	within := func(d time.Duration, stamp string) bool {
		at, err := time.Parse(time.RFC3339, stamp)
		return err == nil && time.Since(at) < d
	}
	var selection, shape = selections(), shapes()
	same := func(in []question, form ...string) func(*truth) ([]string, error) {
		for _, q := range in {
			if slices.Equal(q.form, form) {
				return q.want
			}
		}
		panic(fmt.Sprint("no question ", form))
	}
	related := func(lines func(*relations) []string) func(*truth) ([]string, error) {
		return func(*truth) ([]string, error) {
			r, err := relationsOf(c, i)
			if err != nil {
				return nil, err
			}
			return lines(r), nil
		}
	}
	around := func(root, direction, edge string) func(*truth) ([]string, error) {
		return related(func(r *relations) []string {
			maps.DeleteFunc(r.edges, func(e string, _ bool) bool { return !strings.Contains(e, " "+edge) })
			return r.walk(root, 3, direction)
		})
	}
	asRoot := func(o harness.Object) bool {
		return slices.ContainsFunc(containers(o), func(c any) bool {
			if own := str(c, "securityContext", "runAsNonRoot"); own != "" {
				return own != "true"
			}
			return str(o, "spec", "securityContext", "runAsNonRoot") != "true"
		})
	}
	restarts := func(o harness.Object) (most int) {
		most = -1
		for _, s := range each(o, "status", "containerStatuses") {
			var n int
			_, _ = fmt.Sscan(str(s, "restartCount"), &n)
			most = max(most, n)
		}
		return most
	}
	return map[string]func(*truth) ([]string, error){
		"Which pods are not running although they have a node?": where(func(o harness.Object) bool {
			return str(o, "status", "phase") != "Running" && str(o, "spec", "nodeName") != ""
		}, "pods"),
		"Which pods run images of this registry path?":                          same(selection, "filter", `object.spec.containers.exists(c, c.image.startsWith("`+shopImages+`"))`),
		"What belongs to this team, in any kind, custom resources included?":    same(manyKinds(), "labelSelector", "app.kubernetes.io/part-of=shop"),
		"What is in this namespace, in any kind?":                               where(func(o harness.Object) bool { return o.Namespace() == "shop" }),
		"What becomes, from now on, of what belongs to this team, in any kind?": same(manyKinds(), "labelSelector", "app.kubernetes.io/part-of=shop"),
		"What owns this pod?": around("pods/data/kafka-0", "in", "owns "),
		"What does this Deployment own, and what do those own?": around("deployments.apps/shop/frontend", "out", "owns "),
		"What uses this ConfigMap?":                             around("configmaps/shop/shop-config", "in", ""),
		"What uses this Secret?":                                around("secrets/shop/shop-credentials", "in", ""),
		"What uses this PersistentVolumeClaim?":                 around("persistentvolumeclaims/data/data-kafka-0", "in", ""),
		"Where is this word, in any kind, and how often in which kind and namespace?": related(func(r *relations) []string {
			return foundLines(found(r.objects, "checkout"))
		}),
		"Which pods request more than 1Gi of memory over all their containers?": same(selection, "filter", `object.spec.containers.map(c, quantity(c.?resources.?requests.?memory.orValue("0")).asApproximateFloat()).sum() > quantity("1Gi").asApproximateFloat()`),
		"How many pods run each image in each namespace?":                       same(shape, "groupBy", "metadata.namespace,spec.containers[*].image"),
		"Which Deployments have unavailable replicas?":                          same(selection, "filter", `object.?status.unavailableReplicas.orValue(0) > 0`),
		"What has been stuck deleting for an hour, in any kind?": where(func(o harness.Object) bool {
			stamp := str(o, "metadata", "deletionTimestamp")
			return stamp != "" && !within(time.Hour, stamp)
		}),
		"Which objects of team-a are bad by themselves, whatever their kind?": where(func(o harness.Object) bool {
			return o.Namespace() == "team-a" && bad(o)
		}),
		"Which Services select nothing?": related(func(r *relations) []string {
			return slices.DeleteFunc(r.dangling(), func(line string) bool {
				return !strings.Contains(line, "services/") || !strings.Contains(strings.Fields(line)[0], "/shop/")
			})
		}),
		"Which ten namespaces request the most CPU?":  same(shape, "groupBy", "metadata.namespace", "agg", "sum(spec.containers[*].resources.requests.cpu)"),
		"How many objects of each kind are there?":    groups(by(path("apiVersion"), path("kind")), one),
		"Which pods restarted most?":                  ordered(10, func(a, b harness.Object) int { return restarts(b) - restarts(a) }, everything, "pods"),
		"Which containers run as root or do not say?": where(asRoot, "pods"),
		"What of any kind is younger than an hour, newest first?": ordered(0, func(a, b harness.Object) int {
			return strings.Compare(str(b, "metadata", "creationTimestamp"), str(a, "metadata", "creationTimestamp"))
		}, func(o harness.Object) bool { return within(time.Hour, str(o, "metadata", "creationTimestamp")) }),
	}
}

// bad judges an object as the API server has it.
func bad(o harness.Object) bool {
	raw, err := json.Marshal(o)
	return err == nil && health.Of(raw, time.Now()).Status == health.Bad
}

// foundLines say what a search finds: how many, of which kinds, and where.
func foundLines(ids []string) []string {
	counts := map[string]int{"total": len(ids)}
	for _, id := range ids {
		parts := strings.Split(id, "/")
		counts["kind "+parts[0]]++
		if parts[1] != "-" {
			counts["namespace "+parts[1]]++
		}
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("%s = %d", what, n))
	}
	return lines
}

// answered reads an answer as lines: names of objects, groups, facets, edges.
func answered(i *harness.Informerd, url string) ([]string, error) {
	switch {
	case strings.HasPrefix(url, "/v1/graph/dangling"):
		return readDangling(i, url)
	case strings.HasPrefix(url, "/v1/graph/"):
		var g graph
		err := i.Read(url, &g)
		return g.edges(), err
	case strings.HasPrefix(url, "/v1/search"):
		return readFound(i, url)
	}
	return listed(i, url)
}

func readFound(i *harness.Informerd, url string) ([]string, error) {
	type values []struct {
		Value   string
		Objects int
	}
	var answer struct {
		Total  int
		Facets struct{ Kind, Namespace values }
	}
	if err := i.Read(url, &answer); err != nil {
		return nil, err
	}
	lines := []string{fmt.Sprintf("total = %d", answer.Total)}
	for what, all := range map[string]values{"kind": answer.Facets.Kind, "namespace": answer.Facets.Namespace} {
		for _, v := range all {
			lines = append(lines, fmt.Sprintf("%s %s = %d", what, v.Value, v.Objects))
		}
	}
	return lines, nil
}

func listed(i *harness.Informerd, url string) ([]string, error) {
	var answer struct {
		Kind     string
		Metadata struct {
			Resources []struct {
				Resource, Reason string
				Answered         bool
				State            string
			}
		}
		Facets []facet
		Items  []harness.Object
	}
	if err := i.Read(url, &answer); err != nil {
		return nil, err
	}
	for _, r := range answer.Metadata.Resources {
		if !r.Answered && r.State != "unwatched" {
			return nil, fmt.Errorf("%s is not answered: %s", r.Resource, r.Reason)
		}
	}
	if len(answer.Facets) > 0 {
		return facetLines(answer.Facets), nil
	}
	lines := []string{}
	for _, item := range answer.Items {
		if answer.Kind == "GroupList" {
			lines = append(lines, groupLine(item))
		} else {
			lines = append(lines, name(item))
		}
	}
	return lines, nil
}

// facet is one of an answer.
type facet struct {
	Path   string
	Values []struct {
		Value   any
		Objects int
	}
}

func facetLines(all []facet) (lines []string) {
	for _, f := range all {
		for _, v := range f.Values {
			lines = append(lines, fmt.Sprintf("%s|%s = %d", f.Path, strings.ReplaceAll(fmt.Sprint(v.Value), "<nil>", "null"), v.Objects))
		}
	}
	return lines
}

var columnOrder = []string{"metadata.namespace", "apiVersion", "kind", "status.phase", "spec.nodeName", "spec.containers[*].image"}

func groupLine(item harness.Object) string {
	keys, _ := item["group"].(map[string]any)
	var cells []string
	for _, column := range columnOrder {
		if v, ok := keys[column]; ok {
			cells = append(cells, strings.ReplaceAll(fmt.Sprint(v), "<nil>", "null"))
		}
	}
	values, _ := item["values"].(map[string]any)
	value := "null"
	for _, v := range values {
		if v != nil {
			value = amountOf(fmt.Sprint(v))
		}
	}
	return strings.Join(cells, "|") + " = " + value
}

// check asks until informerd and the API server agree.
func (q question) check(tb testing.TB, i *harness.Informerd, t *truth) {
	tb.Helper()
	err := harness.Poll(20*time.Second, func() error {
		t.anew()
		want, err := q.want(t)
		if err != nil {
			return err
		}
		got, err := answered(i, q.url())
		if err != nil {
			return err
		}
		return q.compare(got, want)
	})
	if err != nil {
		tb.Errorf("%s: %v", q.url(), err)
	}
}

func (q question) compare(got, want []string) error {
	got, want = slices.Clone(got), slices.Clone(want)
	if !q.ordered {
		slices.Sort(got)
		slices.Sort(want)
	}
	if q.shownInPart() {
		for _, lines := range [][]string{got, want} {
			for n, line := range lines {
				lines[n] = line[strings.LastIndexByte(line, ' ')+1:]
			}
		}
		if !q.ordered {
			slices.Sort(got)
			slices.Sort(want)
		}
	}
	if slices.Equal(got, want) {
		return nil
	}
	for n := range max(len(got), len(want)) {
		if n >= len(got) || n >= len(want) || got[n] != want[n] {
			return fmt.Errorf("%d lines, want %d; the first that differs: %q, want %q", len(got), len(want), get(got, n), get(want, n))
		}
	}
	return nil
}

func get(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return ""
}

// shownInPart: the answer does not say of which kind an object is.
func (q question) shownInPart() bool {
	return slices.Contains(q.form, "view") || slices.Contains(q.form, "fields")
}

// TestQueries asks everything in the tables and compares with what follows from
// the API server's own lists.
func TestQueries(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	told := newTruth(t, c, i)
	all := append(append(selections(), manyKinds()...), shapes()...)
	t.Logf("%d questions", len(all))
	if len(all) < 60 {
		t.Errorf("only %d questions", len(all))
	}
	empty := 0
	for _, q := range all {
		q.check(t, i, told)
		if want, err := q.want(told); err == nil && len(want) == 0 {
			empty++
			t.Logf("nothing is found by %s", q.url())
		}
	}
	if empty > len(all)/10 {
		t.Errorf("%d of %d questions find nothing", empty, len(all))
	}
}

var documentedQuestion = regexp.MustCompile(`(?m)^# (.+\?|.+)\ncurl -sN?G "\$INFORMERD([^"]+)"(.*)$`)
var documentedParameter = regexp.MustCompile(`--data-urlencode '([^'=]+)=([^']*)'`)

// TestDocumentedQueries asks what docs/query.md shows.
func TestDocumentedQueries(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	told := newTruth(t, c, i)
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "query.md"))
	if err != nil {
		t.Fatal(err)
	}
	checkExamples(t, i, root)
	wanted := documented(c, i)
	found := documentedQuestion.FindAllStringSubmatch(string(doc), -1)
	if len(found) != len(wanted) {
		t.Errorf("docs/query.md shows %d questions, %d are expected", len(found), len(wanted))
	}
	for _, m := range found {
		q := question{route: m[2], want: wanted[m[1]]}
		for _, p := range documentedParameter.FindAllStringSubmatch(m[3], -1) {
			q.form = append(q.form, p[1], p[2])
		}
		if q.want == nil {
			t.Errorf("nothing is expected of %q", m[1])
			continue
		}
		q.ordered = slices.Contains(q.form, "sort") && !slices.Contains(q.form, "groupBy")
		if q.parameter("watch") == "true" {
			q.form = slices.DeleteFunc(q.form, func(s string) bool { return s == "watch" || s == "true" })
			f := harness.Follow(t, i, q.url())
			f.Wait(t)
			harness.Eventually(t, time.Minute, m[1], func() error { told.anew(); return q.sameAs(f, told) })
			continue
		}
		q.check(t, i, told)
	}
}

// documentedExample is one of the other URLs in the documents, or a part of one
// that is asked of pods.
var (
	documentedExample = regexp.MustCompile(`(?m)^(?:curl -sN? 'https?://localhost:8080|curl -sN? 'localhost:8080)?(/v1/[^'\s]+)`)
	documentedPart    = regexp.MustCompile(`(?m)^((?:sort|groupBy)=\S+)`)
	documentedFilter  = regexp.MustCompile(`(?m)^((?:object\.|age\().*)$`)
)

// checkExamples asks what the documents show beside the questions. Names of
// objects in them need not be of this cluster.
func checkExamples(t *testing.T, i *harness.Informerd, root string) {
	asked := 0
	for _, doc := range []string{"query.md", "search.md", "graph.md", "health.md", "api.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", doc))
		if err != nil {
			t.Fatal(err)
		}
		var examples []string
		for _, m := range documentedExample.FindAllStringSubmatch(string(text), -1) {
			examples = append(examples, m[1])
		}
		for _, m := range documentedPart.FindAllStringSubmatch(string(text), -1) {
			examples = append(examples, podsRoute+"?"+m[1])
		}
		for _, m := range documentedFilter.FindAllStringSubmatch(string(text), -1) {
			examples = append(examples, podsRoute+"?filter="+url.QueryEscape(m[1]))
		}
		asked += len(examples)
		for _, example := range examples {
			path, parameters, _ := strings.Cut(example, "?")
			form, err := url.ParseQuery(parameters)
			if err != nil {
				t.Errorf("%s: %s: %v", doc, example, err)
				continue
			}
			if form.Has("watch") {
				form.Set("timeoutSeconds", "1")
			}
			a := i.MustGet(t, path+"?"+form.Encode())
			named := strings.HasPrefix(path, "/v1/graph/") && a.Status == http.StatusNotFound
			several := form.Has("cluster") && a.Status == http.StatusBadRequest && strings.Contains(string(a.Body), "is not configured")
			if a.Status != http.StatusOK && !named && !several {
				t.Errorf("%s: %s: %d %s", doc, example, a.Status, a.Body)
			}
		}
	}
	if asked < 30 {
		t.Errorf("only %d examples were found", asked)
	}
}

// TestQueryTables: rows of several kinds in one table are those that the API
// server prints of each.
func TestQueryTables(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "deployments.apps", "queues.messaging.example.com")
	uris := map[string]string{
		"pods": "/api/v1/namespaces/shop/pods", "deployments.apps": "/apis/apps/v1/namespaces/shop/deployments",
		"queues.messaging.example.com": "/apis/messaging.example.com/v1/namespaces/shop/queues",
	}
	type row struct {
		Resource string
		Cells    []any
		Object   harness.Object
	}
	line := func(resource string, r row) string {
		return fmt.Sprint(resource, " ", r.Object.Name(), " ", r.Cells[:len(r.Cells)-1]) // the last is the age
	}
	harness.Eventually(t, time.Minute, "the rows to equal the API server's", func() error {
		var want, got []string
		for resource, uri := range uris {
			a, err := c.Raw(t.Context(), "GET", uri, "application/json;as=Table;v=v1;g=meta.k8s.io")
			if err != nil {
				return err
			}
			var printed struct {
				ColumnDefinitions []struct{ Priority int }
				Rows              []row
			}
			if err := json.Unmarshal(a.Body, &printed); err != nil || a.Status != http.StatusOK {
				return fmt.Errorf("%s: %d, %v", uri, a.Status, err)
			}
			for _, r := range printed.Rows {
				for len(r.Cells) > 0 && printed.ColumnDefinitions[len(r.Cells)-1].Priority > 0 {
					r.Cells = r.Cells[:len(r.Cells)-1]
				}
				want = append(want, line(resource, r))
			}
		}
		var table struct {
			Columns []struct {
				Resource string
				Columns  []struct{ Priority int }
			}
			Items []row
		}
		answer, err := i.Get("/v1/query?view=table&namespace=shop&sort=metadata.name&resources=" + strings.Join(slices.Sorted(maps.Keys(uris)), ","))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(answer.Body, &table); err != nil {
			return err
		}
		for _, r := range table.Items {
			for _, columns := range table.Columns {
				for columns.Resource == r.Resource && columns.Columns[len(r.Cells)-1].Priority > 0 {
					r.Cells = r.Cells[:len(r.Cells)-1]
				}
			}
			got = append(got, line(r.Resource, r))
		}
		if !slices.IsSortedFunc(table.Items, func(a, b row) int { return strings.Compare(a.Object.Name(), b.Object.Name()) }) {
			return fmt.Errorf("the rows are not sorted")
		}
		return same(got, want)
	})
}

// TestQueryClusters: one question to two clusters, which are the same one under
// two names, finds everything twice and says where.
func TestQueryClusters(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: "- match: [configmaps]\n"})
	i.Stop()
	i.WriteConfig(fmt.Sprintf("listen: %s\nclusters:\n- {name: east, kubeconfig: %q}\n- {name: west, kubeconfig: %q}\nsnapshot: {path: \"\"}\nresources: [{match: [configmaps]}]\n",
		strings.TrimPrefix(i.URL, "http://"), c.Kubeconfig("admin"), c.Kubeconfig("admin")))
	i.Start()
	told := &truth{cluster: c, resources: map[string]harness.Resource{"configmaps": {Version: "v1", Resource: "configmaps"}}}
	for query, clusters := range map[string][]string{"": {"east", "west"}, "&cluster=west": {"west"}, "&cluster=east&cluster=west": {"east", "west"}} {
		harness.Eventually(t, syncTime, "the ConfigMaps of "+fmt.Sprint(clusters), func() error {
			told.anew()
			all, err := told.of("configmaps")
			if err != nil {
				return err
			}
			var answer struct{ Items []harness.Object }
			if err := i.Read("/v1/query?resources=configmaps&sort=metadata.name"+query, &answer); err != nil {
				return err
			}
			var got, want []string
			for _, o := range answer.Items {
				from, _ := o["cluster"].(string)
				delete(o, "cluster")
				got = append(got, from+" "+o.Canonical())
			}
			for _, o := range all {
				for _, from := range clusters {
					if len(clusters) == 1 {
						from = "" // there is nothing to tell apart
					}
					want = append(want, from+" "+harness.Kept(o).Canonical())
				}
			}
			return same(got, want)
		})
	}
}
