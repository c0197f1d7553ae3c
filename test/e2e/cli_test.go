package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/informerd/informerd/test/e2e/harness"
)

// terminal runs the commands of the program as a user would, asking i.
type terminal struct{ env []string }

// newTerminal has the program under its two names first on its PATH.
func newTerminal(t *testing.T, i *harness.Informerd, kubeconfig string) *terminal {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir, program := t.TempDir(), filepath.Join(root, "bin", "informerd")
	for _, name := range []string{"informerd", "kubectl-informerd"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	path := dir + string(filepath.ListSeparator) + os.Getenv("PATH")
	return &terminal{append(os.Environ(), "INFORMERD="+i.URL, "KUBECONFIG="+kubeconfig, "PATH="+path)}
}

// shell runs a line.
func (s *terminal) shell(line string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.finish(exec.CommandContext(ctx, "/bin/sh", "-c", line))
}

func (s *terminal) finish(cmd *exec.Cmd) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return out.String(), err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestTerminal: the examples of docs/cli.md are true, trees are what the owners' references
// say, and wait ends at a change that it waits for.
func TestTerminal(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Plain: true})
	i.WaitLive(t, syncTime, "pods", "deployments.apps", "replicasets.apps", "cronjobs.batch", "secrets")
	s := newTerminal(t, i, "/dev/null")
	t.Run("examples", func(t *testing.T) { tryExamples(t, s) })
	t.Run("tree", func(t *testing.T) { checkTree(t, c, s) })
	t.Run("kubectl-tree", func(t *testing.T) { checkKubectlTree(t, c, s) })
	t.Run("wait", func(t *testing.T) { waitForChange(t, c, s) })
	t.Run("plugin", func(t *testing.T) { checkPlugin(t, newTerminal(t, i, c.Kubeconfig("admin"))) })
	t.Run("pipe", func(t *testing.T) {
		if out, errs, code := s.shell("informerd get '*' -A -o json | head -c 10"); len(out) != 10 || errs != "" && !strings.HasPrefix(errs, "warning: ") || code != 0 {
			t.Errorf("code %d, %q, %q", code, out, errs)
		}
	})
}

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	wantedCode = regexp.MustCompile(`\s+# exit code (\d+)$`)
)

// example is a line of docs/cli.md and the exit code that it should have.
type example struct {
	line string
	code int
}

func examples(t *testing.T) (all []example) {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			e := example{line: strings.TrimSpace(line)}
			if m := wantedCode.FindStringSubmatch(e.line); m != nil {
				e.code, _ = strconv.Atoi(m[1])
				e.line = strings.TrimSuffix(e.line, m[0])
			}
			all = append(all, e)
		}
	}
	return all
}

// tryExamples runs them two at a time: most of their time they start.
func tryExamples(t *testing.T, s *terminal) {
	all := examples(t)
	if len(all) < 40 {
		t.Fatalf("%d examples, the expressions find too few", len(all))
	}
	var running sync.WaitGroup
	places := make(chan struct{}, 2)
	for _, e := range all {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			out, errs, code := s.shell(e.line)
			if code != e.code || out == "" && errs == "" && !strings.HasPrefix(e.line, "informerd diff") {
				t.Errorf("%s\nexit code %d, want %d\n%s%s", e.line, code, e.code, out, errs)
			}
		})
	}
	running.Wait()
}

// checkTree compares the trees of all Deployments and CronJobs with what the API server
// says of owners.
func checkTree(t *testing.T, c *harness.Cluster, s *terminal) {
	for _, of := range [][]schema.GroupVersionResource{
		{{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"}, {Version: "v1", Resource: "pods"}},
		{{Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "batch", Version: "v1", Resource: "jobs"}, {Version: "v1", Resource: "pods"}},
	} {
		harness.Eventually(t, time.Minute, "trees to equal the owners", func() error {
			want, err := ownedTrees(c, of)
			if err != nil {
				return err
			}
			if len(want) == 0 {
				return fmt.Errorf("no %s", of[0].Resource)
			}
			for root, ids := range want {
				out, errs, code := s.shell("informerd tree " + root + " -o name")
				got := slices.Sorted(strings.Lines(strings.TrimSuffix(out, "\n")))
				for n := range got {
					got[n] = strings.TrimSuffix(got[n], "\n")
				}
				if slices.Sort(ids); code != 0 || !slices.Equal(got, ids) {
					return fmt.Errorf("tree of %s: code %d, %q, want %q; %s", root, code, got, ids, errs)
				}
			}
			return nil
		})
	}
}

// ownedTrees are the ids in the tree of each object of the first resource.
func ownedTrees(c *harness.Cluster, resources []schema.GroupVersionResource) (map[string][]string, error) {
	trees, rootOf := map[string][]string{}, map[string]string{}
	for n, gvr := range resources {
		l, err := c.List(context.Background(), gvr, "")
		if err != nil {
			return nil, err
		}
		for _, o := range l.Items {
			id := gvr.GroupResource().String() + "/" + o.Namespace() + "/" + o.Name()
			root := id
			if n > 0 {
				root = ""
				for _, ref := range ownerUIDs(o) {
					if rootOf[ref] != "" {
						root = rootOf[ref]
					}
				}
			}
			if root != "" {
				rootOf[o.UID()] = root
				trees[root] = append(trees[root], id)
			}
		}
	}
	return trees, nil
}

func ownerUIDs(o harness.Object) (uids []string) {
	metadata, _ := o["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, r := range references {
		if ref, ok := r.(map[string]any); ok {
			uid, _ := ref["uid"].(string)
			uids = append(uids, uid)
		}
	}
	return uids
}

// waitForChange waits for a change, and then makes it.
func waitForChange(t *testing.T, c *harness.Cluster, s *terminal) {
	ctx, maps := t.Context(), c.Client.CoreV1().ConfigMaps("default")
	name := fmt.Sprintf("waited-%d", fresh())
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	type ended struct {
		out, err string
		code     int
		at       time.Time
	}
	end := make(chan ended, 1)
	go func() {
		out, errs, code := s.shell("informerd wait cm/" + name + " -n default --for 'object.?data.ready.orValue(\"\") == \"yes\"' --timeout 50s")
		end <- ended{out, errs, code, time.Now()}
	}()
	select {
	case e := <-end:
		t.Fatalf("ended before the change: %+v", e)
	case <-time.After(500 * time.Millisecond):
	}
	changed := time.Now()
	if _, err := maps.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"ready":"yes"}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e := <-end
	if e.code != 0 || e.out != "configmap/"+name+" condition met\n" {
		t.Errorf("%+v", e)
	}
	t.Logf("wait ended %v after the change was asked for", e.at.Sub(changed))
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := s.shell("informerd wait cm/" + name + " -n default --for delete"); code != 0 {
		t.Errorf("code %d, %s%s", code, out, errs)
	}
}

// checkPlugin: kubectl finds it, and its namespace is that of the kubeconfig.
func checkPlugin(t *testing.T, s *terminal) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("this machine has no kubectl of its own")
	}
	out, errs, code := s.shell("kubectl informerd get pods -n shop")
	if code != 0 || !strings.HasPrefix(out, "NAME ") || !strings.Contains(out, "\ncart-") {
		t.Errorf("code %d, %s%s", code, out, errs)
	}
	if out, errs, _ := s.shell("kubectl informerd get --help"); !strings.Contains(out, "kubectl informerd get KINDS") {
		t.Errorf("the help is of another command:\n%s%s", out, errs)
	}
}
