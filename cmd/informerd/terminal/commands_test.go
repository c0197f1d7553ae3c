package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cache"
)

// TestCommands: what each command prints of the same objects, and the code it ends with.
func TestCommands(t *testing.T) {
	w := newWorld(t)
	ages := regexp.MustCompile(`\b\d+[dhmsy](\d+[dhms])?\b`)
	for line, want := range map[string]result{
		"get pods -A -o name":                                      {out: "pod/web-1-a\npod/web-1-b\npod/alone\n"},
		"get po -n shop -o name":                                   {out: "pod/web-1-a\npod/web-1-b\n"},
		"get pods,deploy,nodes -n shop -o name":                    {out: "pod/web-1-a\npod/web-1-b\ndeployment.apps/web\nnode/n1\n"},
		"get pods/shop/web-1-a deploy/web -n shop -o name":         {out: "pod/web-1-a\ndeployment.apps/web\n"},
		"get pods alone -o name":                                   {out: "pod/alone\n"},
		"get pods --filter object.status.phase=='Pending' -o name": {out: "pod/web-1-b\n"},
		"get pods --field-selector status.phase!=Running -o name":  {out: "pod/web-1-b\n"},
		"get pods -l app!=web -o name":                             {},
		"get pods -n none":                                         {err: "No resources found in namespace none.\n"},
		"get pods --sort-by={.metadata.name} -o name":              {out: "pod/alone\npod/web-1-a\npod/web-1-b\n"},
		"get pods -o custom-columns=N:.metadata.name,I:.spec.containers[*].image,X:.spec.x --limit 1": {out: "N         I                        X\nweb-1-a   registry.example/web:1   <none>\n"},
		"get pods -o custom-columns=I:.spec.containers[0].image --no-headers --limit 1":               {out: "registry.example/web:1\n"},
		"get pods -o csv --fields metadata.name --limit 1":                                            {out: "metadata.name\r\nweb-1-a\r\n"},
		"get pods -o ndjson --fields metadata.name --limit 1":                                         {out: `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-1-a"}}` + "\n"},
		"get cm one -n shop -o yaml":                                                                  {out: "apiVersion: v1\ndata:\n  a: \"1\"\n  b: \"2\"\nkind: ConfigMap\nmetadata:\n  name: one\n  namespace: shop\n  resourceVersion: \"1\"\n  uid: c1\n"},
		"get pods web-1-a nope -n shop -o name":                                                       {out: "pod/web-1-a\n", err: `pods "shop/nope" not found`, code: ExitNo},
		"get pods nope":                                                                               {err: `pods "nope" not found in any namespace`, code: ExitNo},
		"get podz":                                                                                    {err: `unknown resource: "podz"; did you mean pods?`, code: ExitNo},
		"get pods -A -n shop":                                                                         {err: "-A looks in all namespaces, -n in shop: give one of them", code: ExitUsage},
		"get pods/a/b/c":                                                                              {err: `"pods/a/b/c" is no object: write KIND/NAME, or KIND/NAMESPACE/NAME (the namespace is - at cluster scope)`, code: ExitUsage},
		"get pods -o xml":                                                                             {err: `--output: "xml" is none of table, wide, yaml, json, name, csv, ndjson, custom-columns`, code: ExitUsage},
		"get pods --filter object.(":                                                                  {err: "filter: column 8: Syntax error: no viable alternative at input '.('", code: ExitUsage},
		"get nodes/shop/n1":                                                                           {err: "nodes are in no namespace: write nodes/n1", code: ExitUsage},
		"count pods --by status.phase":                                                                {out: "STATUS.PHASE   COUNT\nRunning        2\nPending        1\n"},
		"count pods,nodes -n shop":                                                                    {out: "", err: "pods are in namespaces and nodes are not: count them with -A, or one after the other", code: ExitUsage},
		"count --no-headers":                                                                          {out: "v1        Pod          3\nv1        ConfigMap    2\napps/v1   Deployment   1\napps/v1   ReplicaSet   1\nv1        Node         1\n"},
		"count pods --by metadata.namespace --agg sum(spec.containers[*].resources.requests.cpu)": {out: "METADATA.NAMESPACE   SUM(SPEC.CONTAINERS[*].RESOURCES.REQUESTS.CPU)\nshop                 1\nteam                 500m\n"},
		"search alone":                          {out: "KIND   NAMESPACE   NAME\npods   team        alone\n"},
		"search kind:deploy -o name":            {out: "deployments.apps/shop/web\n"},
		"search nothing":                        {err: `nothing matches "nothing" in any namespace`, code: ExitNo},
		"tree deploy/web -n shop":               {out: "NAMESPACE   NAME                 READY   REASON   AGE\nshop        Deployment/web       1/2              <unknown>\nshop        └─ReplicaSet/web-1   1/2              <unknown>\nshop          ├─Pod/web-1-a      -                AGE\nshop          └─Pod/web-1-b      -                AGE\n"},
		"tree deploy web -o name":               {out: "deployments.apps/shop/web\nreplicasets.apps/shop/web-1\npods/shop/web-1-a\npods/shop/web-1-b\n"},
		"tree deploy/nope -n shop":              {err: `deployments.apps "shop/nope" not found`, code: ExitNo},
		"used-by cm/shop/settings --depth 1":    {out: "NAMESPACE   NAME                 VIA\nshop        ConfigMap/settings   (is not there)\nshop        ├─Pod/web-1-a        mounts by spec.volumes[*].configMap\nshop        └─Pod/web-1-b        mounts by spec.volumes[*].configMap\n"},
		"used-by cm/shop/one":                   {err: "nothing uses configmaps/shop/one", code: ExitNo},
		"dangling":                              {out: "NAMESPACE   NAME          EDGE     MISSING              BY\nshop        Pod/web-1-a   mounts   ConfigMap/settings   spec.volumes[*].configMap\nshop        Pod/web-1-b   mounts   ConfigMap/settings   spec.volumes[*].configMap\nteam        Pod/alone     mounts   ConfigMap/settings   spec.volumes[*].configMap\n"},
		"dangling -n team -o name --exit-code":  {out: "pods/team/alone\n", code: ExitNo},
		"dangling nodes --exit-code":            {err: "Nothing dangles in any namespace.\n"},
		"top":                                   {out: "NODE   PODS    CPU REQUESTS   CPU LIMITS   MEMORY REQUESTS   MEMORY LIMITS\nn1     3/110   1.50 (38%)     0.00 (0%)    3 GiB (38%)       0 B (0%)\n"},
		"top namespaces --no-headers --limit 1": {out: "shop   2   1.00   0.00   2 GiB   0 B\n", err: "1 more are not shown: --limit 1\n"},
		"top pods":                              {err: `invalid argument "pods" for "informerd top"`, code: -1},
		"diff cm/shop/one cm/shop/one":          {},
		"diff cm/one cm/two -n shop":            {out: "--- configmaps/shop/one\n+++ configmaps/shop/two\n@@ -1,6 +1,6 @@\n apiVersion: v1\n data:\n   a: \"1\"\n-  b: \"2\"\n+  b: \"3\"\n kind: ConfigMap\n metadata: {}\n", code: ExitNo},
		"diff cm/one":                           {err: "compare it with what? Name another object, or two clusters with --cluster", code: ExitUsage},
		"wait pods -n shop --for create":        {out: "pod/web-1-a created\npod/web-1-b created\n"},
		"wait pods/web-1-a -n shop --for object.status.phase=='Running'":     {out: "pod/web-1-a condition met\n"},
		"wait pods/gone -n shop --for delete":                                {out: "pod/gone deleted\n"},
		"wait pods -n shop --for object.status.phase=='Running' --timeout 0": {err: "not so: object.status.phase=='Running'\npod/web-1-b", code: ExitNo},
		"wait deploy/web -n shop --for condition=Available --timeout 0":      {err: "not so: condition=Available\ndeployment.apps/web", code: ExitNo},
		"wait pods -n shop": {err: `--for is needed: --for 'object.status.phase == "Running"', condition=Ready, create or delete`, code: ExitUsage},
		"wait pods -l app=none --for create --timeout 1ms": {code: -2},
		"health pods/shop/web-1-a -o name":                 {out: "pods/shop/web-1-a\n"},
	} {
		got := w.run(t, strings.Fields(line)...)
		if strings.HasPrefix(line, "tree") {
			got.out = ages.ReplaceAllString(got.out, "AGE")
		}
		if want.code == -2 { // there may have been no time at all to learn how it stands
			if got.code != ExitNo && got.code != ExitNoAnswer {
				t.Errorf("%s: %+v", line, got)
			}
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// TestTables: the columns of kubectl get, the kind before names where there are several,
// and the namespace where there may be several.
func TestTables(t *testing.T) {
	w := newWorld(t)
	one := w.run(t, "get", "nodes")
	if !strings.HasPrefix(one.out, "NAME ") || !strings.Contains(one.out, "\nn1 ") || one.code != 0 {
		t.Errorf("%+v", one)
	}
	several := w.run(t, "get", "pods,nodes", "-A", "--show-labels")
	for _, part := range []string{"NAMESPACE   NAME ", "shop        pod/web-1-a ", "   app=web\n", "\n\nNAME ", "\nnode/n1 "} {
		if !strings.Contains(several.out, part) {
			t.Errorf("no %q in\n%s", part, several.out)
		}
	}
	if narrow := w.run(t, "get", "pods", "-n", "shop"); strings.Contains(narrow.out, "NAMESPACE") {
		t.Errorf("a column for the only namespace:\n%s", narrow.out)
	}
}

// TestNamespaceOfContext: the rule of kubectl, where there is a kubeconfig.
func TestNamespaceOfContext(t *testing.T) {
	w := newWorld(t)
	file := writeKubeconfig(t, "https://127.0.0.1:1", "team")
	if got := w.run(t, "get", "pods", "-o", "name", "--kubeconfig", file); got.out != "pod/alone\n" {
		t.Errorf("%+v", got)
	}
	got := w.run(t, "get", "pods", "web-1-a", "--kubeconfig", file)
	if want := `pods "team/web-1-a" not found; looked in namespace team (of context "ctx"; -A looks in all)`; got.err != want || got.code != ExitNo {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := w.run(t, "search", "web", "kind:deploy", "-o", "name", "--kubeconfig", file); got.out != "deployments.apps/shop/web\n" {
		t.Errorf("a search looks in one namespace only: %+v", got)
	}
	if got := w.run(t, "get", "pods", "--kubeconfig", file, "--context", "other"); got.code != ExitUsage || got.err != `the kubeconfig has no context "other", but ctx` {
		t.Errorf("%+v", got)
	}
}

// TestOldAnswers: what an answer is worth is said beside it.
func TestOldAnswers(t *testing.T) {
	w := newWorld(t)
	w.of("pods").set(cache.Stale)
	if got := w.run(t, "get", "pods", "-o", "name"); !strings.Contains(got.err, "warning: pods is stale") || got.code != 0 || got.out == "" {
		t.Errorf("%+v", got)
	}
	w.of("pods").set(cache.Syncing)
	if got := w.run(t, "get", "pods,cm", "-o", "name"); !strings.Contains(got.err, "warning: not in this answer: pods") || got.out != "configmap/one\nconfigmap/two\n" {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "get", "pods"); got.code != ExitNoAnswer || !strings.Contains(got.err, "syncing") || got.out != "" {
		t.Errorf("no data is no list without objects: %+v", got)
	}
}

// TestHostileText: what others write into objects gives no orders to a terminal.
func TestHostileText(t *testing.T) {
	w := newWorld(t)
	w.of("cm").apply(t, cache.Added, `{"metadata":{"name":"evil","namespace":"shop","uid":"e","resourceVersion":"200"},"data":{"a":"\u001b[2Jgone\u202e","b":"x\ny"}}`)
	for _, args := range [][]string{
		{"get", "cm", "evil", "-o", "custom-columns=A:.data.a,B:.data.b"}, {"count", "cm", "--by", "data.a"}, {"diff", "cm/shop/one", "cm/shop/evil"},
	} {
		got := w.run(t, args...)
		if strings.ContainsAny(got.out, "\x1b\u202e") || got.out == "" {
			t.Errorf("%v: %q", args, got.out)
		}
	}
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	for line, want := range map[string]string{
		"get po":                               "pods",
		"get pods we":                          "web-1-a web-1-b",
		"get pods web-1-a we":                  "web-1-b",
		"get deploy/w":                         "deploy/web",
		"count pods --by status.ph":            "status.phase",
		"count pods --by spec.nodeName,stat":   "spec.nodeName,status spec.nodeName,status.phase",
		"get pods -l app=w":                    "app=web",
		"get podz x":                           "",
		"top na":                               "namespaces",
		"get pods --server http://127.0.0.1:1": "",
	} {
		fields := strings.Fields(line)
		args := append([]string{"__complete", fields[0], "--server", w.url}, fields[1:]...)
		got := runCommand(t.Context(), args...)
		if strings.HasSuffix(line, ":1") {
			got = runCommand(t.Context(), "__complete", "get", "--server", "http://127.0.0.1:1", "po")
		}
		var found []string
		for value := range strings.Lines(got.out) {
			if value = strings.TrimSpace(value); value != "" && value[0] != ':' && !strings.HasPrefix(value, "Completion") {
				found = append(found, value)
			}
		}
		if strings.Join(found, " ") != want {
			t.Errorf("%s: %q, want %q", line, found, want)
		}
	}
}

// TestClusters: what is of several clusters says so, or asks which is meant.
func TestClusters(t *testing.T) {
	w := newTwins(t)
	for line, want := range map[string]result{
		"get nodes -o name":                         {out: "node/n-east\nnode/n-west\n"},
		"get nodes -o name --cluster west":          {out: "node/n-west\n"},
		"get nodes --cluster south":                 {err: `cluster: "south" is not configured (there is: east, west)`, code: ExitUsage},
		"get cm one -n shop -o csv --fields data.a": {out: "data.a\r\n0\r\n1\r\n"},
		"count cm": {out: "APIVERSION   KIND        COUNT\nv1           ConfigMap   2\n"},
		"diff cm/one -n shop --cluster east --cluster west": {out: "--- east/configmaps/shop/one\n+++ west/configmaps/shop/one\n@@ -1,5 +1,5 @@\n apiVersion: v1\n data:\n-  a: \"0\"\n+  a: \"1\"\n kind: ConfigMap\n metadata: {}\n", code: ExitNo},
		"diff cm/a cm/b --cluster east --cluster west":      {err: "two objects are of one cluster here: name one object for two clusters", code: ExitUsage},
		"search one --cluster east -o name":                 {out: "configmaps/shop/one\n"},
		"search one --cluster east --cluster west":          {err: "--cluster: this question is about one cluster, not 2", code: ExitUsage},
		"top": {err: "there are nodes of several clusters: say which with --cluster", code: ExitUsage},
		"wait cm/one -n shop --for object.data.a=='1' --timeout 0": {err: "not so: object.data.a=='1'\nconfigmap/one", code: ExitNo},
	} {
		got := w.run(t, strings.Fields(line)...)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
	if got := w.run(t, "get", "cm/one", "-n", "shop", "-o", "yaml"); !strings.Contains(got.out, "cluster: east") || !strings.Contains(got.out, "cluster: west") {
		t.Errorf("%+v", got)
	}
	if got := w.run(t, "get", "nodes"); !strings.HasPrefix(got.out, "CLUSTER   NAME") || !strings.Contains(got.out, "\nwest      n-west") {
		t.Errorf("%+v", got)
	}
	watching := w.start(t, "watch", "nodes")
	watching.out.wait(t, "east/node/n-east", "west/node/n-west")
	watching.stop()
	watching.end(t)
	if got := w.run(t, "tree", "cm/one", "-n", "shop"); got.code != ExitUsage || !strings.Contains(got.err, "name one") {
		t.Errorf("%+v", got)
	}
}

// TestPrintable: what others have written gives no orders to a terminal, neither in errors
// nor where an answer is shown as it is.
func TestPrintable(t *testing.T) {
	if code, message, _ := Outcome(no("not so\nrole/\x1b]0;x\a is there\u202e")); code != ExitNo || message != "not so\nrole/ ]0;x  is there " {
		t.Errorf("%d %q", code, message)
	}
	for screen, want := range map[bool]string{false: "a,\x1b[2J\nb\n", true: "a, [2J\nb\n"} {
		var out bytes.Buffer
		s := &session{out: bufio.NewWriter(&out), screen: screen}
		if err := errors.Join(s.copy(strings.NewReader("a,\x1b[2J\nb\n")), s.out.Flush()); err != nil || out.String() != want {
			t.Errorf("screen %v: %q, %v", screen, out.String(), err)
		}
	}
}

// TestGetGone: an object that goes while it is asked for is not found, and not nothing.
func TestGetGone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/v1/resources/pods":
			_, _ = io.WriteString(w, `{"name":"pods","kind":"Pod","version":"v1","resource":"pods","namespaced":true}`)
		case "/v1/query":
			_, _ = io.WriteString(w, `{"items":[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}]}`)
		default:
			w.WriteHeader(404)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"pods \"shop/a\" not found","code":404}`)
		}
	}))
	t.Cleanup(s.Close)
	for _, form := range []string{"yaml", "json"} {
		if r := runCommand(t.Context(), "get", "pods/a", "-n", "shop", "-o", form, "--server", s.URL); r.code != ExitNo || r.out != "" || !strings.Contains(r.err, "not found") {
			t.Errorf("%s: %+v", form, r)
		}
	}
}

// TestListInLines: what is no terminal gets a List in which each object is a line.
func TestListInLines(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"get pods -A -o json", "get cm,deploy -A -o json", "get cm/one deploy/web -n shop -o json", "get pods -n none -o json"} {
		r := w.run(t, strings.Fields(line)...)
		var list struct {
			Kind  string
			Items []json.RawMessage
		}
		if err := json.Unmarshal([]byte(r.out), &list); err != nil || !strings.HasSuffix(list.Kind, "List") || r.code != 0 {
			t.Fatalf("%s: %v, %+v", line, err, r)
		}
		lines := strings.Split(r.out, "\n")
		for i, item := range list.Items {
			if got := strings.TrimSuffix(lines[i+1], ","); got != string(item) {
				t.Errorf("%s: line %d is %s, want %s", line, i+1, got, item)
			}
		}
		if want := len(list.Items) > 0; strings.HasSuffix(r.out, "\n]}\n") != want {
			t.Errorf("%s: it ends with %q", line, r.out[max(0, len(r.out)-20):])
		}
	}
}

// TestExitCodeUnanswered: what cannot be read is not known to be well.
func TestExitCodeUnanswered(t *testing.T) {
	w := newWorld(t)
	for line, want := range map[string][2]int{
		"health nodes,configmaps --exit-code":   {0, 0}, // it is not about pods
		"health pods --exit-code":               {ExitNo, ExitNoAnswer},
		"health deploy/web -n shop --exit-code": {ExitNo, ExitNoAnswer},
		"used-by cm/one -n shop":                {ExitNo, ExitNoAnswer},
		"search nothing":                        {ExitNo, ExitNoAnswer},
		"dangling -n team --exit-code":          {ExitNo, ExitNoAnswer},
	} {
		before := w.run(t, strings.Fields(line)...)
		w.of("pods").set(cache.Syncing)
		after := w.run(t, strings.Fields(line)...)
		w.of("pods").set(cache.Live)
		if before.code != want[0] || after.code != want[1] {
			t.Errorf("%s: exit code %d, then %d, want %v: %s", line, before.code, after.code, want, after.err)
		}
	}
}
