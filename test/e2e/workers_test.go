package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/test/child"
	"github.com/informerd/informerd/test/e2e/harness"
)

// shownProgram is a program of docs/workers as it runs, and may be started again.
type shownProgram struct {
	t       *testing.T
	line    []string
	env     []string
	log     string
	process *child.Process
}

// newShownProgram prepares a program; line is how docs/handlers.md says to run it.
func newShownProgram(t *testing.T, line []string, env ...string) *shownProgram {
	t.Helper()
	if _, err := exec.LookPath(line[0]); err != nil {
		t.Fatalf("%v: run make worker-deps", err)
	}
	d := &shownProgram{t: t, line: line, env: env, log: filepath.Join(t.TempDir(), "log")}
	t.Cleanup(func() {
		if d.process != nil {
			d.process.Kill()
		}
		if t.Failed() {
			t.Logf("%v printed:\n%s", line, d.printed())
		}
	})
	return d
}

func (d *shownProgram) start() {
	d.t.Helper()
	root, err := harness.Root()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command(d.line[0], d.line[1:]...)
	cmd.Dir = filepath.Join(root, "docs", "workers")
	cmd.Env = append(os.Environ(), append(d.env, "PYTHONDONTWRITEBYTECODE=1")...)
	if d.process, err = child.Start(d.line[1], cmd, d.log, syscall.SIGKILL); err != nil {
		d.t.Fatal(err)
	}
}

// kill ends it at once.
func (d *shownProgram) kill() {
	d.t.Helper()
	if !d.process.Running() {
		d.t.Fatalf("%v ended by itself: %v", d.line, d.process.Err())
	}
	d.process.Kill()
}

// stop ends it as an operator does.
func (d *shownProgram) stop() {
	d.t.Helper()
	if !d.process.Running() {
		d.t.Fatalf("%v ended by itself: %v", d.line, d.process.Err())
	}
	if err := d.process.Stop(10 * time.Second); err != nil {
		d.t.Fatal(err)
	}
}

func (d *shownProgram) printed() string {
	data, err := os.ReadFile(d.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
	return string(data)
}

// handled are the lines that it printed of objects of a namespace, without order.
func (d *shownProgram) handled(namespace string) []string {
	var all []string
	for line := range strings.Lines(d.printed()) {
		if words := strings.Fields(line); len(words) > 2 && strings.HasPrefix(words[2], namespace+"/") {
			all = append(all, strings.Join(words, " "))
		}
	}
	slices.Sort(all)
	return all
}

// TestDocumentedWorkers: the workers of docs/handlers.md, as they stand there, work on every
// change once: over TLS with a token that may claim and nothing else, through restarts of
// informerd and of themselves.
func TestDocumentedWorkers(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	const ns = "documented-workers"
	createNamespace(t, c, ns)
	mayClaim(t, c, "documented-worker", "/v1/handlers/python/claim", "/v1/handlers/javascript/claim", "/v1/handlers/shell/claim")
	token := tokenOf(t, c, "documented-worker", "documented-worker")
	handlers := ""
	for _, name := range []string{"python", "javascript", "shell"} {
		handlers += "- {name: " + name + ", resources: [configmaps], namespaces: [" + ns + "], filter: 'has(object.data)', as: informerd, from: beginning}\n"
	}
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), "informerd.db"), Rules: "\n- match: [configmaps]\n",
		TLS: true, Access: "authentication: {}\n", Handlers: handlers,
	})
	env := func(ca string) []string {
		return []string{"INFORMERD=" + i.URL, "INFORMERD_TOKEN=" + token, ca + "=" + i.CAFile()}
	}
	workers := map[string]*shownProgram{
		"python":     newShownProgram(t, []string{"python3", "worker.py", "python"}, env("INFORMERD_CA")...),
		"javascript": newShownProgram(t, []string{"node", "worker.mjs", "javascript"}, env("NODE_EXTRA_CA_CERTS")...),
		"shell":      newShownProgram(t, []string{"sh", "worker.sh", "shell"}, env("CURL_CA_BUNDLE")...),
	}
	var want []string
	expect := func(transition, name, version string) {
		want = append(want, fmt.Sprintf("%s configmaps %s/%s %s", transition, ns, name, version))
	}
	create := func(name string) {
		expect("enters", name, createConfigMap(t, c, ns, name, nil, map[string]any{"a": "1"}).GetResourceVersion())
	}
	patch := func(name string) {
		expect("changes", name, patchConfigMap(t, c, ns, name, `{"data":{"a":"2"}}`).GetResourceVersion())
	}
	admin := newAsker(t, c, i, "admin")
	check := func(when string) {
		t.Helper()
		for name, w := range workers {
			harness.Eventually(t, syncTime, when+": all handled by "+name, func() error { return handledAll(w, ns, want) })
			harness.Eventually(t, syncTime, when+": all acknowledged by "+name, func() error { return nothingPending(t, admin, name) })
		}
	}

	for _, w := range workers {
		w.start()
	}
	for _, name := range []string{"a", "b", "c"} {
		create(name)
	}
	check("at first")

	i.Stop() // while all of them wait for keys
	patch("a")
	deleteConfigMap(t, c, ns, "b")
	expect("leaves", "b", "")
	i.Start()
	check("after a restart of informerd")

	workers["python"].kill()
	workers["javascript"].stop()
	workers["shell"].stop()
	patch("c")
	create("d")
	i.Kill()
	for _, w := range workers {
		w.start()
	}
	i.Start()
	check("after restarts of both")
}

// mayClaim makes a cluster role as docs/api.md shows it.
func mayClaim(t *testing.T, c *harness.Cluster, name string, paths ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"post"}}},
	}
	if _, err := c.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// handledAll compares what a worker printed with what it had to. Only one of them prints the
// version of what left.
func handledAll(w *shownProgram, namespace string, want []string) error {
	got := w.handled(namespace)
	for n, line := range got {
		words := strings.Fields(line)
		if words[0] == "gone" || words[0] == "leaves" {
			got[n] = strings.Join([]string{"leaves", words[1], words[2], ""}, " ")
		}
	}
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		return fmt.Errorf("handled:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return nil
}

// nothingPending asks a handler whether all that it had is acknowledged, and that saved.
func nothingPending(t *testing.T, a *asker, handler string) error {
	code, body := a.get(t, "/v1/handlers/"+handler)
	var s struct{ Pending, InFlight, Failed int }
	if err := json.Unmarshal(body, &s); code != http.StatusOK || err != nil {
		return fmt.Errorf("%d %s: %v", code, body, err)
	}
	if s.Pending > 0 || s.InFlight > 0 || s.Failed > 0 {
		return fmt.Errorf("%s", body)
	}
	return nil
}

// TestDocumentedWorkersBadAnswers: no answer that is cut off, refused for now, not to be read
// or missing ends one of the programs, and neither does a claim that was lost.
func TestDocumentedWorkersBadAnswers(t *testing.T) {
	t.Parallel()
	for file, program := range map[string]string{"worker.py": "python3", "worker.mjs": "node", "worker.sh": "sh", "controller.py": "python3"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			bad := &badInformerd{}
			s := httptest.NewServer(bad)
			defer s.Close()
			w := newShownProgram(t, []string{program, file, "h"}, "INFORMERD="+s.URL, "KUBERNETES="+s.URL, "HANDLER=h")
			w.start()
			harness.Eventually(t, syncTime, "both claims acknowledged", func() error {
				if !w.process.Running() {
					t.Fatalf("it ended: %v", w.process.Err())
				}
				if acked := bad.settled(); !slices.Equal(acked, []string{"ack lost", "ack good"}) {
					return fmt.Errorf("settled: %q", acked)
				}
				return nil
			})
		})
	}
}

// badInformerd answers one claim after the other in another bad way, and then two well. It is
// the API server, too, for the one that asks that.
type badInformerd struct {
	mu      sync.Mutex // guards all below
	claims  int
	settles []string
}

func (b *badInformerd) settled() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.settles)
}

func (b *badInformerd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch what, ok := strings.CutPrefix(r.URL.Path, "/v1/handlers/h/"); {
	case !ok: // asked as the API server
		fmt.Fprint(w, "{}")
	case what == "claim":
		b.claims++
		b.claim(w)
	default:
		b.settle(w, r, what)
	}
}

func (b *badInformerd) claim(w http.ResponseWriter) {
	item := func(token string) {
		fmt.Fprintf(w, `{"items":[{"token":%q,"id":"h/1/1","transition":"enters","resource":"services","namespace":"n","name":"s","resourceVersion":"1","object":{"spec":{}}}]}`, token)
	}
	switch b.claims {
	case 1:
		w.Header().Set("Content-Length", "1000") // the connection is closed amid the answer
		fmt.Fprint(w, `{"items":[`)
	case 2:
		w.Header().Set("Retry-After", "1")
		http.Error(w, `{"code":503}`, http.StatusServiceUnavailable)
	case 3:
		fmt.Fprint(w, "<html>")
	case 4:
		panic(http.ErrAbortHandler) // closed without an answer
	case 5:
		item("lost")
	case 6:
		item("good")
	default:
		time.Sleep(10 * time.Millisecond) // informerd would wait
		fmt.Fprint(w, `{"items":[]}`)
	}
}

func (b *badInformerd) settle(w http.ResponseWriter, r *http.Request, what string) {
	var body struct{ Tokens []string }
	if data, err := io.ReadAll(r.Body); err != nil || len(data) > 0 && json.Unmarshal(data, &body) != nil {
		http.Error(w, "not to be read", http.StatusBadRequest)
		return
	}
	token := cmp.Or(r.URL.Query().Get("token"), strings.Join(body.Tokens, ","))
	b.settles = append(b.settles, what+" "+token)
	if token == "lost" {
		http.Error(w, `{"code":409}`, http.StatusConflict)
		return
	}
	fmt.Fprintf(w, `{"results":[{"token":%q,"ok":true}]}`, token)
}
