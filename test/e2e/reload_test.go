package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/test/e2e/harness"
)

// rules are the resources: section of a config.yaml for the reload test; each
// step changes one thing.
const (
	rulesBefore = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io, endpointslices.discovery.k8s.io]
  watch: false
- match: [pods]
  indexes: {node: spec.nodeName}
- match: ["*"]
`
	rulesIndexAdded = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io, endpointslices.discovery.k8s.io]
  watch: false
- match: [pods]
  indexes: {node: spec.nodeName, image: "spec.containers[*].image"}
- match: ["*"]
`
	rulesIndexRemoved = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io, endpointslices.discovery.k8s.io]
  watch: false
- match: [pods]
  indexes: {image: "spec.containers[*].image"}
- match: ["*"]
`
	rulesResourceAdded = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io]
  watch: false
- match: [pods]
  indexes: {image: "spec.containers[*].image"}
- match: ["*"]
`
	rulesResourceRemoved = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io, services]
  watch: false
- match: [pods]
  indexes: {image: "spec.containers[*].image"}
- match: ["*"]
`
	rulesDropped = `
- match: [events, events.events.k8s.io, leases.coordination.k8s.io, services]
  watch: false
- match: [pods]
  indexes: {image: "spec.containers[*].image"}
- match: [deployments.apps]
  drop: [metadata.managedFields, spec.template]
- match: ["*"]
`
)

// declared are the other sections that take effect while it runs.
const declared = `references:
- {edge: logsInWith, from: queues.messaging.example.com, path: spec.secretRef, to: secrets}
search: {texts: {queues.messaging.example.com: [spec.retention]}}
`

// TestReload: a changed config.yaml takes effect without a restart and touches
// the resources it is about, nothing else: no watch of another one is opened
// anew, no stream ends. A bad file changes nothing.
func TestReload(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: rulesBefore})
	i.WaitLive(t, syncTime, "pods", "services", "deployments.apps")
	followers := map[string]*harness.Follower{}
	for _, name := range []string{"pods", "configmaps", "deployments.apps", "services"} {
		followers[name] = harness.Follow(t, i, "/v1/resources/"+name+"/objects")
		followers[name].Wait(t)
	}

	step := func(name, rules string, touched []string, done func() error) {
		t.Helper()
		before, err := i.Resources()
		if err != nil {
			t.Fatal(err)
		}
		mark := c.AuditMark(t)
		i.WriteRules(rules)
		harness.Eventually(t, 30*time.Second, name, done)
		i.WaitLive(t, syncTime)
		after, err := i.Resources()
		if err != nil {
			t.Fatal(err)
		}
		for resource, was := range before {
			is := after[resource]
			if slices.Contains(touched, resource) {
				continue
			}
			if was.Counts.Relists != is.Counts.Relists || was.Counts.Restarts != is.Counts.Restarts || was.Since != is.Since {
				t.Errorf("%s: %s was touched: %+v, then %+v", name, resource, was, is)
			}
		}
		for _, r := range c.Audit(t, mark, harness.Agent) {
			// Watches end by themselves after some minutes, discovery asks now
			// and then; what must not be is a list.
			if r.IsList() && !slices.Contains(touched, r.Resource) {
				t.Errorf("%s: request for a resource that was not touched: %v", name, r)
			}
		}
		harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"pods", "configmaps"}})
	}
	indexes := func(want ...string) func() error {
		return func() error {
			list, err := i.Indexes("pods")
			var names []string
			for _, index := range list {
				names = append(names, index.Name)
			}
			if diff := cmp.Diff(append([]string{"namespace", "label", "owner"}, want...), names); err != nil || diff != "" {
				return fmt.Errorf("%v: -want +got\n%s", err, diff)
			}
			return nil
		}
	}
	state := func(resource, want string) func() error {
		return func() error {
			all, err := i.Resources()
			if err == nil && all[resource].State != want {
				err = fmt.Errorf("%s is %s, want %s", resource, all[resource].State, want)
			}
			return err
		}
	}

	step("index added", rulesIndexAdded, nil, indexes("image", "node"))
	step("index removed", rulesIndexRemoved, nil, indexes("image"))
	step("resource added", rulesResourceAdded, []string{"endpointslices.discovery.k8s.io"}, state("endpointslices.discovery.k8s.io", "live"))
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"endpointslices.discovery.k8s.io"}})
	followers["services"].CheckUndisturbed(t)

	step("resource removed", rulesResourceRemoved, []string{"services"}, state("services", "unwatched"))
	if a := i.MustGet(t, "/v1/resources/services/objects"); a.Status != http.StatusNotFound || !strings.Contains(string(a.Body), "NotWatched") {
		t.Errorf("a resource that is left out: %d %s", a.Status, a.Body)
	}
	harness.Eventually(t, 30*time.Second, "stream of a resource that is left out ends", func() error {
		if ends := followers["services"].Ends(); len(ends) == 0 {
			return fmt.Errorf("it goes on")
		}
		return nil
	})
	followers["pods"].CheckUndisturbed(t)
	followers["deployments.apps"].CheckUndisturbed(t)

	dropped := func() error {
		list, err := i.List("deployments.apps", "fields=spec.template.spec.containers")
		if err != nil {
			return err
		}
		if data := fmt.Sprint(list.Items); strings.Contains(data, "containers") {
			return fmt.Errorf("spec.template is there")
		}
		return nil
	}
	step("path dropped", rulesDropped, []string{"deployments.apps"}, dropped)
	harness.CheckEqual(t, c, i, harness.Check{Resources: []string{"deployments.apps"}, Kept: func(o harness.Object) harness.Object {
		if spec, ok := o["spec"].(map[string]any); ok {
			delete(spec, "template")
		}
		return harness.Kept(o)
	}})
	if n := i.Resource(t, "deployments.apps").Objects; n == 0 {
		t.Error("there are no deployments")
	}

	// Relations and texts are declared without touching any resource.
	step("reference and text declared", rulesDropped+declared, nil, func() error {
		var around struct{ Edges []struct{ To, Edge string } }
		if err := i.Read("/v1/graph/queues.messaging.example.com/shop/orders?direction=out&depth=1", &around); err != nil {
			return err
		}
		var found struct{ Total int }
		if err := i.Read("/v1/search?q=text:72h", &found); err != nil {
			return err
		}
		if len(around.Edges) != 1 || around.Edges[0].Edge != "logsInWith" || around.Edges[0].To != "secrets/shop/shop-credentials" || found.Total == 0 {
			return fmt.Errorf("edges %v, %d objects found by a text", around.Edges, found.Total)
		}
		return nil
	})

	// Each mistake is said with its line, and the file is refused whole.
	lines := len(i.LogLines("refused"))
	good := indexes("image")
	i.WriteRules(strings.Replace(rulesIndexAdded, "indexes: {", "indices: {", 1))
	harness.Eventually(t, 30*time.Second, "bad file refused", func() error {
		if now := i.LogLines("configuration refused", "config.yaml:14:", "indices"); len(now) == 0 || len(i.LogLines("refused")) == lines {
			return fmt.Errorf("log: %q", i.LogLines("refused"))
		}
		return nil
	})
	if err := good(); err != nil {
		t.Errorf("after a bad file: %v", err)
	}
	i.WriteRules(rulesBefore)
	harness.Eventually(t, 30*time.Second, "back to the first rules", indexes("node"))

	// SIGHUP reads a file that nothing is seen to change, too.
	reloaded := len(i.LogLines("configuration reloaded"))
	i.Signal(syscall.SIGHUP)
	harness.Eventually(t, 30*time.Second, "reload by SIGHUP", func() error {
		if len(i.LogLines("configuration reloaded")) == reloaded {
			return fmt.Errorf("not logged")
		}
		return nil
	})
	i.WaitLive(t, syncTime)
	for _, name := range []string{"pods", "configmaps"} {
		followers[name].CheckUndisturbed(t)
	}
	harness.CheckEqual(t, c, i, harness.Check{})
}
