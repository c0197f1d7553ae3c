package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/informerd/informerd/test/e2e/harness"
)

// informed are client-go's three kinds of informers, on configmaps and pods.
type informed map[string]cache.SharedIndexInformer

var allPods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// startInformers starts them against a server until the test ends.
func startInformers(t *testing.T, url string) informed {
	t.Helper()
	config := &rest.Config{Host: url, QPS: -1}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	md, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	dynamics := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	metadatas := metadatainformer.NewSharedInformerFactory(md, 0)
	all := informed{
		"typed pods":          typed.Core().V1().Pods().Informer(),
		"typed configmaps":    typed.Core().V1().ConfigMaps().Informer(),
		"dynamic pods":        dynamics.ForResource(allPods).Informer(),
		"dynamic configmaps":  dynamics.ForResource(configMaps).Informer(),
		"metadata pods":       metadatas.ForResource(allPods).Informer(),
		"metadata configmaps": metadatas.ForResource(configMaps).Informer(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	typed.Start(ctx.Done())
	dynamics.Start(ctx.Done())
	metadatas.Start(ctx.Done())
	t.Cleanup(func() {
		cancel()
		typed.Shutdown()
		dynamics.Shutdown()
		metadatas.Shutdown()
	})
	return all
}

// checkEqual waits until every informer holds what the API server has.
func (all informed) checkEqual(t *testing.T, c *harness.Cluster, when string) {
	t.Helper()
	for name, informer := range all {
		gvr := configMaps
		if strings.HasSuffix(name, "pods") {
			gvr = allPods
		}
		harness.Eventually(t, 30*time.Second, when+": "+name+" equal to the API server", func() error {
			list, err := c.List(t.Context(), gvr, "")
			if err != nil {
				return err
			}
			want := map[string]string{}
			for _, o := range list.Items {
				want[o.Key()] = o.UID() + " " + o.ResourceVersion()
			}
			return sameVersions(held(informer), want)
		})
	}
}

// held is what an informer has: UID and resourceVersion by key.
func held(informer cache.SharedIndexInformer) map[string]string {
	got := map[string]string{}
	for _, o := range informer.GetStore().List() {
		m, err := meta.Accessor(o)
		if err != nil {
			panic(err)
		}
		got[m.GetNamespace()+"/"+m.GetName()] = string(m.GetUID()) + " " + m.GetResourceVersion()
	}
	return got
}

func sameVersions(got, want map[string]string) error {
	if maps.Equal(got, want) {
		return nil
	}
	for key := range want {
		if got[key] != want[key] {
			return fmt.Errorf("%d objects instead of %d; %s is %q, not %q", len(got), len(want), key, got[key], want[key])
		}
	}
	return fmt.Errorf("%d objects instead of %d", len(got), len(want))
}

// churnMaps creates, changes and deletes ConfigMaps, and leaves some.
func churnMaps(t *testing.T, c *harness.Cluster, prefix string) {
	t.Helper()
	client := c.Client.CoreV1().ConfigMaps("default")
	for n := range 40 {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, n), Labels: map[string]string{"churn": prefix}}}
		cm, err := client.Create(t.Context(), cm, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cm.Data = map[string]string{"n": fmt.Sprint(n)}
		if _, err := client.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if err := client.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		_ = client.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "churn=" + prefix})
	})
}

// TestInformersFollow: client-go's informers, told that informerd is the API
// server, hold what the API server holds, whatever happens to informerd.
func TestInformersFollow(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming lists %v", streaming), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streaming)
			c := demoCluster(t)
			i := harness.StartInformerd(t, harness.Options{
				Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster, Snapshot: t.TempDir() + "/informerd.db",
			})
			i.WaitLive(t, syncTime)
			prefix := fmt.Sprintf("informers-%v", streaming)
			all := startInformers(t, i.URL)
			all.checkEqual(t, c, "at first")
			churnMaps(t, c, prefix+"-churn")
			all.checkEqual(t, c, "after churn")

			i.Stop()
			churnMaps(t, c, prefix+"-restart")
			i.Start()
			all.checkEqual(t, c, "after a restart")

			i.Kill()
			churnMaps(t, c, prefix+"-expired")
			i.ForgetSnapshot(t)
			i.Start() // without a past: watches resumed from before are 410
			all.checkEqual(t, c, "after a 410")
		})
	}
}
