package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/test/e2e/harness"
)

// checkKubectlTree compares the trees of all that owns something with those that kubectl-tree
// (github.com/ahmetb/kubectl-tree) makes from the API server itself. That is a program which
// no module proxy serves, so it is asked only where it is installed; checkTree compares with
// the owners' references everywhere.
func checkKubectlTree(t *testing.T, c *harness.Cluster, s *terminal) {
	program, err := exec.LookPath("kubectl-tree")
	if err != nil {
		t.Skip("this machine has no kubectl-tree")
	}
	compared := 0
	for _, gvr := range []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
		{Group: "batch", Version: "v1", Resource: "cronjobs"}, {Group: "batch", Version: "v1", Resource: "jobs"},
		{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "nodes"},
	} {
		roots, err := c.List(t.Context(), gvr, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, root := range roots.Items {
			harness.Eventually(t, 30*time.Second, "the trees to be equal", func() error {
				theirs, ours, err := bothTrees(t, s, program, c.Kubeconfig("admin"), gvr, root)
				if err == nil && !slices.Equal(theirs, ours) {
					err = fmt.Errorf("%s %s/%s: %q, kubectl-tree has %q", gvr.Resource, root.Namespace(), root.Name(), ours, theirs)
				}
				if err == nil && len(ours) > 1 {
					compared++
				}
				return err
			})
		}
	}
	if t.Logf("%d trees of more than one object are equal", compared); compared < 10 {
		t.Error("too few to say anything")
	}
}

// bothTrees are the Kind/name of all objects in the tree of root, as kubectl-tree and as
// informerd tell them. kubectl-tree has no tree of an object that owns nothing.
func bothTrees(t *testing.T, s *terminal, program, kubeconfig string, gvr schema.GroupVersionResource, root harness.Object) (theirs, ours []string, err error) {
	resource := gvr.GroupResource().String()
	args := []string{resource, root.Name(), "--kubeconfig", kubeconfig}
	line := "informerd tree " + resource + "/" + root.Name()
	if ns := root.Namespace(); ns != "" {
		args, line = append(args, "-n", ns), line+" -n "+ns
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = os.Environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("kubectl-tree: %w: %s", err, out)
	}
	text, errs, code := s.shell(line)
	if code != 0 {
		return nil, nil, fmt.Errorf("%s: code %d: %s", line, code, errs)
	}
	ours = treeIDs(text)
	if theirs = treeIDs(string(out)); len(theirs) == 0 && len(ours) == 1 {
		theirs = ours
	}
	return theirs, ours, nil
}

// treeIDs are the Kind/name in the lines of a drawn tree, sorted; the first line, and what
// is no row of it, are left out.
func treeIDs(drawn string) (ids []string) {
	for line := range strings.Lines(drawn) {
		for _, word := range strings.Fields(strings.Map(dropBranches, line)) {
			if strings.Contains(word, "/") && strings.ToUpper(word[:1]) == word[:1] {
				ids = append(ids, word)
				break
			}
		}
	}
	slices.Sort(ids)
	return ids
}

func dropBranches(r rune) rune {
	if strings.ContainsRune("│├└─", r) {
		return ' '
	}
	return r
}
