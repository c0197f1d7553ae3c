package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/test/e2e/harness"
)

// shardSelectors part all objects by a field into so many shards, at most 16.
func shardSelectors(field string, n int) (all []string) {
	digit := func(i int) string { return fmt.Sprintf("0x%x%015x", i*16/n, 0) }
	for i := range n {
		end := "0x10000000000000000"
		if i < n-1 {
			end = digit(i + 1)
		}
		all = append(all, fmt.Sprintf("shardRange(%s, '%s', '%s')", field, digit(i), end))
	}
	return all
}

// TestShards: informers that each ask informerd for one shard (KEP-5866) hold, through churn, what
// such informers at the API server hold, and together every object once. Lists of shards are the
// API server's, whatever form they have, and so is what is said of a selector that is wrong.
func TestShards(t *testing.T) {
	t.Parallel()
	c, err := harness.StartCluster(filepath.Join(t.TempDir(), "cluster"), append([]string{"--apiserver-arg", "--feature-gates=ShardedListAndWatch=true"}, harness.Small...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	for _, ns := range []string{"shard-a", "shard-b", "shard-c", "shard-d"} {
		createNamespace(t, c, ns)
		for n := range 12 {
			createConfigMap(t, c, ns, fmt.Sprint("seed-", n), nil, nil)
		}
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	t.Run("lists", func(t *testing.T) { checkShardLists(t, c, i) })
	t.Run("mistakes", func(t *testing.T) { checkShardMistakes(t, c, i) })

	checkHalves := startHalves(t, c)
	ours, theirs := map[string]holder{}, map[string]holder{}
	var selectors [][]string
	for _, field := range []string{"object.metadata.uid", "object.metadata.namespace"} {
		parts := shardSelectors(field, 3)
		selectors = append(selectors, parts)
		for _, s := range parts {
			ours[s] = startShard(t, &rest.Config{Host: i.URL, QPS: -1}, s)
			theirs[s] = startShard(t, c.Config, s)
		}
	}
	churnMaps(t, c, "shards")
	for _, parts := range selectors {
		harness.Eventually(t, time.Minute, "the shards are equal to the API server's", func() error {
			want, err := serverVersions(t, c, configMaps)
			if err != nil {
				return err
			}
			all := versions{}
			for _, s := range parts {
				got, err := ours[s].held()
				peer, perr := theirs[s].held()
				if err := errors.Join(err, perr); err != nil {
					return err
				}
				if diff := cmp.Diff(peer, got); diff != "" {
					return fmt.Errorf("%s: -API server's +informerd's\n%s", s, diff)
				}
				for key, version := range got {
					if all[key] != "" {
						return fmt.Errorf("%s is in two shards", key)
					}
					all[key] = version
				}
			}
			if diff := cmp.Diff(want, all); diff != "" {
				return fmt.Errorf("all shards together: -want +got\n%s", diff)
			}
			return nil
		})
	}
	checkHalves()
}

// TestShardsOfAny: informerds that share a resource do so at an API server that knows no shards.
func TestShardsOfAny(t *testing.T) {
	inTurn(t, &smallLane)
	c := smallCluster(t)
	check := startHalves(t, c)
	churnMaps(t, c, "halves")
	check()
}

// startHalves starts two informerds that each watch one half of all ConfigMaps. The check is for
// after churn: they hold every object, each one of them, also after a start on the snapshot. The
// API server was asked for halves.
func startHalves(t *testing.T, c *harness.Cluster) (check func()) {
	t.Helper()
	mark := c.AuditMark(t)
	var halves []*harness.Informerd
	for n, s := range shardSelectors("object.metadata.uid", 2) {
		i := harness.StartInformerd(t, harness.Options{
			Kubeconfig: c.Kubeconfig("admin"), Snapshot: filepath.Join(t.TempDir(), fmt.Sprint("half-", n)), Verify: time.Minute,
			Rules: fmt.Sprintf("  - match: [configmaps]\n    shardSelector: %q\n", s),
		})
		i.WaitLive(t, syncTime, "configmaps")
		halves = append(halves, i)
	}
	equal := func() error {
		want, err := serverVersions(t, c, configMaps)
		if err != nil {
			return err
		}
		all := versions{}
		for n, i := range halves {
			list, err := i.List("configmaps", "")
			if err != nil {
				return err
			}
			got := versionsOf(list)
			if len(got) < len(want)/5 {
				return fmt.Errorf("half %d has %d of %d objects", n, len(got), len(want))
			}
			for key, version := range got {
				if all[key] != "" {
					return fmt.Errorf("%s is in both halves", key)
				}
				all[key] = version
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			return fmt.Errorf("both halves together: -want +got\n%s", diff)
		}
		return nil
	}
	return func() {
		t.Helper()
		harness.Eventually(t, time.Minute, "two halves to be the whole", equal)
		for _, i := range halves {
			i.Stop()
			i.Start()
			i.WaitLive(t, syncTime, "configmaps")
		}
		harness.Eventually(t, time.Minute, "two halves to be the whole after a restart", equal)
		resources, err := halves[0].Resources()
		if err != nil {
			t.Fatal(err)
		}
		if r := resources["configmaps"]; r.Counts.Mended > 0 {
			t.Errorf("%d differences were mended", r.Counts.Mended)
		}
		asked := 0
		for _, r := range c.Audit(t, mark, "informerd/") {
			if r.Resource == "configmaps" && strings.Contains(r.URI, "shardSelector=") {
				asked++
			}
		}
		if asked < 4 { // a list and a watch of each
			t.Errorf("the API server was asked %d times for a shard", asked)
		}
	}
}

// startShard starts an informer on a shard of all ConfigMaps.
func startShard(t *testing.T, config *rest.Config, selector string) holder {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.ShardSelector = selector }))
	h := sharedHolder(selector, configMaps, factory.Core().V1().ConfigMaps().Informer())
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return h
}

func checkShardLists(t *testing.T, c *harness.Cluster, i *harness.Informerd) {
	for _, field := range []string{"object.metadata.uid", "object.metadata.namespace"} {
		parts := shardSelectors(field, 4)
		for _, s := range append(parts, parts[0]+" || "+parts[2]) {
			of := "shardSelector=" + url.QueryEscape(s)
			for _, uri := range []string{"/api/v1/configmaps?", "/api/v1/namespaces/shard-b/configmaps?", "/api/v1/configmaps?labelSelector=none&", "/api/v1/namespaces?"} {
				sameNames(t, c, i, uri+of)
				sameShardInfo(t, c, i, uri+"limit=5&"+of, "application/json")
				sameShardInfo(t, c, i, uri+of, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
				sameShardInfo(t, c, i, uri+of, "application/json;as=Table;v=v1;g=meta.k8s.io")
			}
		}
	}
}

// sameShardInfo wants what lists say of their shard to be the same. How many objects follow a page
// the API server tells of all shards together; informerd does not tell it, as with other selectors.
func sameShardInfo(t *testing.T, c *harness.Cluster, i *harness.Informerd, uri, accept string) {
	t.Helper()
	type about struct {
		Kind     string
		Metadata struct {
			ShardInfo *metav1.ShardInfo
		}
		Items, Rows []any
	}
	read := func(a *harness.Answer, err error) (said string) {
		var list about
		if err == nil {
			err = json.Unmarshal(a.Body, &list)
		}
		if err != nil || a.Status != http.StatusOK {
			t.Fatalf("%s: %d, %v", uri, a.Status, err)
		}
		info := "none"
		if list.Metadata.ShardInfo != nil {
			info = list.Metadata.ShardInfo.Selector
		}
		return fmt.Sprintf("%s of shard %s, %d items, %d rows", list.Kind, info, len(list.Items), len(list.Rows))
	}
	got, want := read(i.Get(uri, "Accept", accept)), read(c.Raw(t.Context(), http.MethodGet, uri, accept))
	if got != want {
		t.Errorf("%s as %s:\ninformerd:  %s\nAPI server: %s", uri, accept, got, want)
	}
}

// checkShardMistakes: the API server says the same, with a code that has clients ask again.
func checkShardMistakes(t *testing.T, c *harness.Cluster, i *harness.Informerd) {
	for _, s := range []string{
		"nonsense", "shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')", "shardRange(object.metadata.uid, '0x0', '0x8')",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')", "!shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
	} {
		for _, watch := range []string{"", "watch=1&"} {
			uri := "/api/v1/configmaps?" + watch + "shardSelector=" + url.QueryEscape(s)
			read := func(a *harness.Answer, err error) metav1.Status {
				var status metav1.Status
				if err == nil {
					err = json.Unmarshal(a.Body, &status)
				}
				if err != nil {
					t.Fatalf("%s: %v", uri, err)
				}
				return status
			}
			got, want := read(i.Get(uri)), read(c.Raw(t.Context(), http.MethodGet, uri, "application/json"))
			if got.Code != http.StatusBadRequest || got.Message != want.Message {
				t.Errorf("%s:\ninformerd:  %d %s\nAPI server: %d %s", uri, got.Code, got.Message, want.Code, want.Message)
			}
		}
	}
}
