package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

type fault = map[string]any

// onWatches are the rules of one fault that befalls watches of configmaps: those that
// are open are cut first, if again is set, so that it befalls new ones. A fault that
// befalls some times only is followed by a rule that shows, by being applied, that
// informerd watches again.
func onWatches(do fault, times int, again bool) []harness.ProxyRule {
	watches := harness.ProxyMatch{Verb: "watch", Path: "^/api/v1/configmaps$"}
	var rules []harness.ProxyRule
	if again {
		once := watches
		once.Times = 1
		rules = append(rules,
			harness.ProxyRule{Name: "cut", Match: once, Do: fault{"cut": fault{"afterEvents": 1}}},
			// After a fault a watch is short, since it is to prove the copy soon.
			harness.ProxyRule{Name: "doubt", Match: once, Do: fault{"error": fault{"code": 500, "event": true}}})
	}
	watches.Times = times
	rules = append(rules, harness.ProxyRule{Name: "fault", Match: watches, Do: do})
	if times > 0 {
		watches.Times = 0
		rules = append(rules, harness.ProxyRule{Name: "after", Match: watches, Do: fault{"delay": fault{"milliseconds": 1}}})
	}
	return rules
}

// TestLies: what comes between informerd and the API server is wrong in ways that
// both see on bad days. No answer claims to be newer than it is, readers' streams go
// on with no false change, nothing is dropped or, where a watch can mend it, listed;
// and in the end everything is equal.
func TestLies(t *testing.T) {
	long(t)
	inTurn(t, &doubleLane)
	c := doubleCluster(t)
	there := c.Through(t, "apiserver-1")
	createNamespace(t, there, "lies")
	for n := range 20 {
		createConfigMap(t, there, "lies", fmt.Sprintf("still-%d-%d", fresh(), n), nil, nil)
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.ProxiedKubeconfig()})
	i.WaitLive(t, syncTime)
	f := harness.Follow(t, i, "/v1/resources/configmaps/objects")
	f.Wait(t)
	witness := there.Witness(t, "lies", 50*time.Millisecond)
	witness.Read(t, i)
	t.Cleanup(func() { heal(t, c) })

	tooLarge := fault{"code": 504, "reason": "Timeout", "message": "Too large resource version: 5, current: 4",
		"causes": []fault{{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}}, "retryAfter": 1}
	asEvent := map[string]any{"event": true}
	for k, v := range tooLarge {
		asEvent[k] = v
	}
	for _, tc := range []struct {
		name  string
		rules []harness.ProxyRule
		// applied is how often the last of the rules is to be at work before all is
		// healed, and listed how many lists of configmaps that may cost.
		applied, listed int
		says            string // what informerd logs of it then, if anything
	}{
		{"a frame that is no JSON", onWatches(fault{"garble": fault{"event": 3, "offset": 0, "mask": 1}}, 1, false), 1, 0, ""},
		{"an object that is no JSON", onWatches(fault{"garble": fault{"event": 2, "offset": 28, "mask": 1}}, 1, false), 1, 0, ""},
		{"frames that stay no JSON", onWatches(fault{"garble": fault{"event": 1, "offset": 0, "mask": 1}}, 2, false), 1, 1, ""},
		{"bookmarks of the future", onWatches(fault{"bookmark": fault{"add": 1 << 40}}, 0, true), 2, 0, "beyond what the API server has reached"},
		{"a watch that is a bookmark and ends", onWatches(fault{"bookmark": fault{"once": true}}, 5, true), 1, 0, ""},
		{"a server that is behind, by event", onWatches(fault{"error": asEvent}, 1, true), 1, 0, ""},
		// The last one, since it leaves watches with long pauses between attempts.
		{"a server that is behind, by status", []harness.ProxyRule{
			{Match: harness.ProxyMatch{Verb: "watch", Times: 60}, Do: fault{"cut": fault{}}},
			{Match: harness.ProxyMatch{Query: `resourceVersion=[1-9]`, Times: 100}, Do: fault{"error": tooLarge}},
		}, 50, 0, ""},
	} {
		mark, said := c.AuditMark(t), len(i.LogLines(tc.says))
		c.Proxy(t, harness.ProxyRules{Rules: tc.rules})
		harness.Eventually(t, 20*time.Second, "the fault: "+tc.name, func() error {
			if n := c.ProxyState(t).Rules[len(tc.rules)-1].Applied; n < tc.applied {
				return fmt.Errorf("applied %d times", n)
			}
			return nil
		})
		harness.Eventually(t, 20*time.Second, "the log of "+tc.name, func() error {
			if tc.says != "" && len(i.LogLines(tc.says)) == said {
				return fmt.Errorf("nothing new about %q", tc.says)
			}
			return nil
		})
		began := time.Now()
		heal(t, c)
		i.WaitLive(t, syncTime)
		took := time.Since(began)
		checkPresent(t, there, i)
		lists := harness.Lists(c.Audit(t, mark, harness.Agent))
		t.Logf("%s: live %.1f s after it, %d lists", tc.name, took.Seconds(), len(lists["configmaps"]))
		if len(lists["configmaps"]) > tc.listed {
			t.Errorf("%s: listed by %v", tc.name, lists["configmaps"])
		}
		delete(lists, "configmaps")
		for resource := range discoveryStreams {
			delete(lists, resource)
		}
		if len(lists) > 0 {
			t.Errorf("%s: listed by %v", tc.name, lists)
		}
	}

	// A list that is cut short begins again: nobody sees half of it.
	c.Proxy(t, harness.ProxyRules{Rules: []harness.ProxyRule{
		{Match: harness.ProxyMatch{Verb: "list", Path: "^/api/v1/configmaps$", Times: 2}, Do: fault{"truncate": fault{}}},
		{Match: harness.ProxyMatch{Verb: "watch", Path: "^/api/v1/configmaps$", Query: "sendInitialEvents", Times: 2}, Do: fault{"cut": fault{"afterEvents": 5}}},
	}})
	cold := harness.StartInformerd(t, harness.Options{Kubeconfig: c.ProxiedKubeconfig()})
	least := len(f.Objects())
	harness.Eventually(t, syncTime, "all of the list", func() error {
		list, err := cold.List("configmaps", "")
		if err == nil && len(list.Items) < least {
			t.Errorf("a list of %d objects is shown as one of %d", least, len(list.Items))
		}
		return err
	})
	cold.WaitLive(t, syncTime)
	if state := c.ProxyState(t); state.Rules[0].Applied == 0 {
		t.Errorf("no list was truncated: %+v", state)
	}
	witness.Stop(t)
	for _, i := range []*harness.Informerd{i, cold} {
		harness.CheckEqual(t, there, i, harness.Check{})
	}
	f.CheckEqual(t, selected(t, there, configMaps, nil))
	f.CheckUndisturbed(t)
	checkStill(t, f)
	for name, r := range mustResources(t, i) {
		if r.Snapshot.Drops > 0 {
			t.Errorf("the snapshot of %s was dropped: %s", name, r.Snapshot.DropReason)
		}
	}
}

func mustResources(t *testing.T, i *harness.Informerd) map[string]harness.Resource {
	t.Helper()
	all, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// checkPresent fails the test for a resource that claims a version which etcd has not
// reached.
func checkPresent(t *testing.T, c *harness.Cluster, i *harness.Informerd) {
	t.Helper()
	all := mustResources(t, i)
	list, err := c.List(t.Context(), namespaces, "")
	if err != nil {
		t.Fatal(err)
	}
	reached, err := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range all {
		if v, err := strconv.ParseUint(r.ResourceVersion, 10, 64); r.State != "unwatched" && (err != nil || v > reached) {
			t.Errorf("%s is %s at %s, etcd at %d", name, r.State, r.ResourceVersion, reached)
		}
	}
}
