package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/informerd/informerd/test/e2e/harness"
)

var allPods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// holder is one informer of somebody else's on one resource.
type holder struct {
	name string
	gvr  schema.GroupVersionResource
	held func() (versions, error)
}

// informed are client-go's three kinds of informers, and the three of
// controller-runtime's cache, on configmaps and pods.
type informed []holder

// startInformers starts them against a server until the test ends.
func startInformers(t *testing.T, url string) informed {
	t.Helper()
	config := &rest.Config{Host: url, QPS: -1}
	return append(startClientGo(t, config), startControllerRuntime(t, config)...)
}

func startClientGo(t *testing.T, config *rest.Config) informed {
	t.Helper()
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
		sharedHolder("typed pods", allPods, typed.Core().V1().Pods().Informer()),
		sharedHolder("typed configmaps", configMaps, typed.Core().V1().ConfigMaps().Informer()),
		sharedHolder("dynamic pods", allPods, dynamics.ForResource(allPods).Informer()),
		sharedHolder("dynamic configmaps", configMaps, dynamics.ForResource(configMaps).Informer()),
		sharedHolder("metadata pods", allPods, metadatas.ForResource(allPods).Informer()),
		sharedHolder("metadata configmaps", configMaps, metadatas.ForResource(configMaps).Informer()),
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

func sharedHolder(name string, gvr schema.GroupVersionResource, informer cache.SharedIndexInformer) holder {
	return holder{"client-go: " + name, gvr, func() (versions, error) {
		all := versions{}
		for _, o := range informer.GetStore().List() {
			if err := all.add(o); err != nil {
				return nil, err
			}
		}
		return all, nil
	}}
}

// startControllerRuntime starts a cache, whose informers begin with the first
// read of their kind.
func startControllerRuntime(t *testing.T, config *rest.Config) informed {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	c, err := ctrlcache.New(config, ctrlcache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("controller-runtime's cache: %v", err)
		}
	})
	read := func(list func() client.ObjectList) func() (versions, error) {
		return func() (versions, error) {
			objects, all := list(), versions{}
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := c.List(ctx, objects); err != nil {
				return nil, err
			}
			return all, meta.EachListItem(objects, func(o runtime.Object) error { return all.add(o) })
		}
	}
	var all informed
	for gvr, kind := range map[schema.GroupVersionResource]string{allPods: "PodList", configMaps: "ConfigMapList"} {
		gvk := gvr.GroupVersion().WithKind(kind)
		all = append(all,
			holder{"controller-runtime: typed " + gvr.Resource, gvr, read(func() client.ObjectList {
				if gvr == allPods {
					return &corev1.PodList{}
				}
				return &corev1.ConfigMapList{}
			})},
			holder{"controller-runtime: unstructured " + gvr.Resource, gvr, read(func() client.ObjectList {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(gvk)
				return list
			})},
			holder{"controller-runtime: metadata " + gvr.Resource, gvr, read(func() client.ObjectList {
				list := &metav1.PartialObjectMetadataList{}
				list.SetGroupVersionKind(gvk)
				return list
			})},
		)
	}
	return all
}

// versions are UIDs and resourceVersions by key.
type versions map[string]string

func (v versions) add(object any) error {
	m, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	v[m.GetNamespace()+"/"+m.GetName()] = string(m.GetUID()) + " " + m.GetResourceVersion()
	return nil
}

// serverVersions are those of a resource at the API server.
func serverVersions(t *testing.T, c *harness.Cluster, gvr schema.GroupVersionResource) (versions, error) {
	list, err := c.List(t.Context(), gvr, "")
	return versionsOf(list), err
}

func versionsOf(list *harness.ObjectList) versions {
	all := versions{}
	if list == nil {
		return all
	}
	for _, o := range list.Items {
		all[o.Key()] = o.UID() + " " + o.ResourceVersion()
	}
	return all
}

// checkEqual waits until every informer holds what the API server has.
func (all informed) checkEqual(t *testing.T, c *harness.Cluster, when string) {
	t.Helper()
	all.check(t, when, func(gvr schema.GroupVersionResource) (versions, error) { return serverVersions(t, c, gvr) })
}

// check waits until every informer holds what want says.
func (all informed) check(t *testing.T, when string, want func(schema.GroupVersionResource) (versions, error)) {
	t.Helper()
	for _, h := range all {
		harness.Eventually(t, time.Minute, when+": what "+h.name+" holds", func() error {
			want, err := want(h.gvr)
			if err != nil {
				return err
			}
			got, err := h.held()
			if err != nil {
				return err
			}
			return sameVersions(got, want)
		})
	}
}

func sameVersions(got, want versions) error {
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

// TestInformersFollow: everybody's informers, told that informerd is the API
// server, hold what the API server holds, whatever happens to informerd.
func TestInformersFollow(t *testing.T) {
	inTurn(t, &demoLane, &featureLane)
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

// TestInformersOutage: while the API server is away, everybody's informers keep
// what they have, and new ones sync; when it is back they follow it again.
func TestInformersOutage(t *testing.T) {
	inTurn(t, &smallLane, &featureLane)
	c := smallCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin"), Rules: wholeCluster})
	i.WaitLive(t, syncTime)
	churnMaps(t, c, "informers-before")
	var all informed
	start := func(when string, want func(schema.GroupVersionResource) (versions, error)) {
		for _, streaming := range []bool{true, false} {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streaming)
			some := startInformers(t, i.URL)
			some.check(t, fmt.Sprintf("started %s, streaming lists %v", when, streaming), want)
			all = append(all, some...)
		}
	}
	start("before the outage", func(gvr schema.GroupVersionResource) (versions, error) { return serverVersions(t, c, gvr) })

	c.Ctl(t, "stop", apiServer)
	t.Cleanup(func() { c.Up(t, apiServer) })
	harness.Eventually(t, syncTime, "an informerd that knows of the outage", func() error {
		return readyzSays(t, i, http.StatusOK, "unreachable")
	})
	copied := func(gvr schema.GroupVersionResource) (versions, error) {
		list, err := i.List(gvr.Resource, "")
		return versionsOf(list), err
	}
	start("during the outage", copied)
	all.check(t, "during the outage", copied)
	if kept, err := copied(configMaps); err != nil || len(kept) < 20 {
		t.Errorf("%d configmaps during the outage, %v", len(kept), err)
	}

	c.Ctl(t, "start", apiServer)
	waitServing(t, c)
	churnMaps(t, c, "informers-after")
	all.checkEqual(t, c, "after the outage")
}
