package filter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/cache"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const web = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","namespace":"shop","creationTimestamp":"2026-01-02T10:00:00Z",
"labels":{"app":"web","app.kubernetes.io/name":"web","tier":"true"},"annotations":{"esc\u0061pe":"a\nb"},"finalizers":["x/y"]},
"spec":{"nodeName":"node-1","replicas":3,"ratio":2.5,"big":18446744073709551615,"paused":false,"nothing":null,"hostIP":"10.0.0.7","empty":{},"none":[],
"containers":[{"name":"main","image":"registry.example/nginx:1.27.1","resources":{"requests":{"cpu":"500m","memory":"1Gi"}},"ports":[80,443]},
{"name":"side","image":"registry.example/proxy:2","resources":{"requests":{"cpu":"1","memory":"512Mi"}}}]},
"status":{"phase":"Running"}}`

// expressions are true (or false, or have no value) of web.
var expressions = []struct {
	text string
	want string // true, false, or a part of the error
}{
	{`object.metadata.name == "web-1"`, "true"},
	{`object.spec.replicas > 2`, "true"},
	{`object.spec.replicas == 3.0`, "true"},
	{`object.spec.ratio > object.spec.replicas`, "false"},
	{`object.spec.big > 1e19`, "true"},
	{`!object.spec.paused`, "true"},
	{`object.spec.nothing == null`, "true"},
	{`has(object.spec.missing)`, "false"},
	{`has(object.spec.nodeName) && object.spec.nodeName.startsWith("node-")`, "true"},
	{`object.spec.missing == 1`, "no such key: missing"},
	{`object.missing.deeper == 1`, "no such key: missing"},
	{`object.spec.nodeName.deeper == 1`, "no such key"},
	{`object.spec.missing == 1 || object.spec.replicas == 3`, "true"},
	{`object.spec.missing == 1 && object.spec.replicas == 4`, "false"},
	{`object.spec.containers.exists(c, c.image.contains("nginx"))`, "true"},
	{`object.spec.containers.all(c, c.image.contains("nginx"))`, "false"},
	{`object.spec.containers.exists(c, true)`, "true"},
	{`object.spec.exists(k, k == "replicas") && object.spec.replicas > 0`, "true"},
	{`object.metadata.labels.exists(k, object.metadata.labels[k] == "none") || object.metadata.labels.all(k, v, v != k)`, "true"},
	{`object.spec.containers.all(i, c, i < 5 && c.name != "")`, "true"},
	{`object.spec.containers.exists(c, c.?ports.orValue([]).exists(p, p.?containerPort.orValue(0) == 1) || object.spec.containers.exists(d, d.image == c.image && d.name != c.name))`, "false"},
	{`object.spec.containers.exists(c, [c].exists(d, d.image.contains("nginx") && size(d) > 0))`, "true"},
	{`object.?spec.?containers.orValue([]).map(c, c.?resources.?requests.?memory.orValue("0")).size() > 0`, "true"},
	{`object.spec.containers.exists_one(c, has(c.ports))`, "true"},
	{`object.spec.containers.filter(c, has(c.ports)).map(c, c.name) == ["main"]`, "true"},
	{`object.spec.containers.map(c, c.ports.size())`, "column 1"},
	{`object.spec.containers[0].ports[1] == 443`, "true"},
	{`object.spec.containers[5].name == "x"`, "index out of bounds"},
	{`443 in object.spec.containers[0].ports`, "true"},
	{`object.spec.containers.size() == 2 && size(object.metadata.labels) == 3`, "true"},
	{`"app" in object.metadata.labels`, "true"},
	{`object.metadata.labels.exists(k, k.startsWith("app.kubernetes.io/"))`, "true"},
	{`object.metadata.labels.all(k, v, k != "" && v != "")`, "true"},
	{`object.metadata.labels["app.kubernetes.io/name"] == "web"`, "true"},
	{`object.metadata.annotations.escape == "a\nb"`, "true"},
	{`object.spec.empty == {} && object.spec.none == []`, "true"},
	{`object.spec.containers[0].ports + [1] == [80, 443, 1]`, "true"},
	{`object.spec == object.spec && object == object`, "true"},
	{`object.spec.containers[0] != object.spec.containers[1]`, "true"},
	{`object.?spec.missing.orValue("x") == "x"`, "true"},
	{`object.?spec.?nodeName.orValue("x") == "node-1"`, "true"},
	{`object.spec.containers.map(c, quantity(c.resources.requests.memory)).exists(q, q.isGreaterThan(quantity("600Mi")))`, "true"},
	{`quantity(object.spec.containers[0].resources.requests.cpu).isLessThan(quantity("1"))`, "true"},
	{`semver("1.27.1").isGreaterThan(semver("1.9.0"))`, "true"},
	{`cidr("10.0.0.0/8").containsIP(object.spec.hostIP)`, "true"},
	{`url("https://example.com/a").getHost() == "example.com"`, "true"},
	{`object.metadata.name.find("[0-9]+") == "1"`, "true"},
	{`object.metadata.name.matches("^web-")`, "true"},
	{`object.spec.containers.map(c, c.name).isSorted()`, "true"},
	{`object.spec.containers[0].ports.sum() == 523`, "true"},
	{`sets.contains(object.metadata.finalizers, ["x/y"])`, "true"},
	{`object.spec.containers.map(c, c.name).join("+") == "main+side"`, "true"},
	{`format.dns1123Label().validate(object.metadata.name) == optional.none()`, "true"},
	{`age(object) == duration("2h")`, "true"},
	{`age(object) > duration("1h") && now.getHours() == 12`, "true"},
	{`health(object) == "good"`, "false"},
	{`health(object) in ["bad", "progressing"]`, "true"},
	{`healthReason(object) == "NotReady"`, "true"},
	{`health(object.spec) == "good"`, "write health(object)"},
	{`health({"kind": "Pod"}) == "good"`, "write health(object)"},
	{`health(object) == 1`, "no matching overload"},
	{`health()`, "no matching overload"},
	{`age(object.spec) > duration("1h")`, "no such key: metadata"},
	{`timestamp(object.metadata.creationTimestamp) < now`, "true"},
	{`type(object.spec) == map && type(object.spec.none) == list`, "true"},
	{`dyn(object.spec.replicas)`, "not true or false"},
	{`object.spec.paused`, "false"},
	{`object.metadata.labels.tier`, "not true or false"},
}

func TestMatch(t *testing.T) {
	for _, test := range expressions {
		t.Run(test.text, func(t *testing.T) {
			if got := matchText(test.text); got != test.want && (test.want == "true" || test.want == "false" || !strings.Contains(got, test.want)) {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

func matchText(expression string) string {
	f, err := Compile(expression, noon)
	if err != nil {
		return err.Error()
	}
	ok, _, err := f.Match(context.Background(), []byte(web))
	if err != nil {
		return err.Error()
	}
	if ok {
		return "true"
	}
	return "false"
}

func TestCompileErrors(t *testing.T) {
	for expression, want := range map[string]string{
		"":                           "filter: empty",
		"object.spec.replicas >":     "filter: column 23: Syntax error",
		"objct.spec == 1":            "filter: column 1: undeclared reference to 'objct'",
		"true &&\n  nothing":         "filter: line 2, column 3: undeclared reference",
		"1 + 2":                      "filter: column 1: the expression is of type int",
		"'a' + 1 == 'a1'":            "filter: column 5: found no matching overload",
		"object.name.matches('(')":   "filter: column 21: invalid matches argument",
		strings.Repeat("1+", 3000):   "filter: 6000 bytes long",
		strings.Repeat("(", 1000):    "filter: ",
		"duration('x') == now - now": "filter: column 10: invalid duration argument",
	} {
		_, err := Compile(expression, noon)
		bad, ok := errors.AsType[*cache.InvalidError](err)
		if !ok || bad.Parameter != "filter" || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Compile(%.40q) = %v, want %s", expression, err, want)
		}
	}
}

func TestCostLimit(t *testing.T) {
	list := strings.Repeat("1,", 500) + "1"
	f, err := Compile("object.l.all(a, object.l.all(b, object.l.all(c, a+b+c > 0)))", noon)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = f.Match(context.Background(), []byte(`{"l":[`+list+`]}`))
	if cost, ok := errors.AsType[*cache.CostError](err); !ok || !strings.Contains(cost.Message, "evaluating it on one object") {
		t.Errorf("Match() = %v, want a CostError", err)
	}
}
