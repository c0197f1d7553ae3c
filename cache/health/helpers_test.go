package health

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/cache/follow"
	"github.com/informerd/informerd/cache/follow/followtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster of empty, live resources, and its Index.
type world struct {
	*followtest.Cluster
	index *Index
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{Cluster: &followtest.Cluster{TB: tb, Sound: SoundOf}}
	for _, line := range []string{"pods v1 Pod", "nodes v1 Node", "configmaps v1 ConfigMap", "events v1 Event", "deployments.apps v1 Deployment", "replicasets.apps v1 ReplicaSet",
		"jobs.batch v1 Job", "cronjobs.batch v1 CronJob", "widgets.example.com v1 Widget", "certificates.cert-manager.io v1 Certificate"} {
		w.addKind(line)
	}
	w.index = w.newIndex()
	return w
}

// addKind adds a resource, as "resource version Kind". The Index learns of it when it is asked
// next.
func (w *world) addKind(line string) {
	f := strings.Fields(line)
	namespaced := f[2] != "Node" && !strings.HasSuffix(f[2], "WebhookConfiguration")
	w.Add(cache.Spec{Resource: cache.Resource{GVR: schema.ParseGroupResource(f[0]).WithVersion(f[1])}, Kind: f[2], Namespaced: namespaced, Watch: true})
}

func (w *world) newIndex() *Index {
	return NewIndex(func() []follow.Resource { return followtest.Followed[follow.Resource](w.Cluster) })
}

// ask asks as who may see everything unless change says otherwise.
func (w *world) ask(change ...func(*Query)) *Answer {
	w.TB.Helper()
	q := Query{Sight: cache.WholeSight(), Limit: 1 << 20}
	for _, c := range change {
		c(&q)
	}
	a, err := w.index.Ask(w.TB.Context(), q)
	if err != nil {
		w.TB.Fatal(err)
	}
	return a
}

// text is an item as "status resource/namespace/name reason affected<-cause".
func (i Item) text() string {
	s := fmt.Sprintf("%s %s/%s %s", i.Status, i.Resource, i.Key, i.Reason)
	if i.Affected > 0 {
		s += fmt.Sprintf(" %d", i.Affected)
	}
	if i.Cause != nil {
		s += " by " + i.Cause.Resource + "/" + i.Cause.Key.String()
	}
	return s
}

func (a *Answer) text() (all []string) {
	for _, i := range a.Items {
		all = append(all, i.text())
	}
	return all
}

// ownedBy is metadata that names a controller, which has the UID of the followtest
// Cluster unless it is said.
func ownedBy(resource, apiVersion, kind, id string) string {
	_, name, namespaced := strings.Cut(id, "/")
	if !namespaced {
		name = id
	}
	return fmt.Sprintf(`"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true}]}`, apiVersion, kind, name, followtest.UID(resource, id))
}
