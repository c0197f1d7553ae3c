package standin

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func start(t *testing.T, pods int) (*Server, *kubernetes.Clientset) {
	t.Helper()
	s := New(pods)
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	c, err := kubernetes.NewForConfig(&rest.Config{Host: served.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// TestStandIn: client-go lists, pages, gets and watches it, and all of them agree.
func TestStandIn(t *testing.T) {
	const count = 120
	s, c := start(t, count)
	s.Change(10)
	all, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]corev1.Pod{}
	for _, p := range all.Items {
		known[p.Namespace+"/"+p.Name] = p
	}
	if len(known) != count || all.ResourceVersion != "1130" {
		t.Fatalf("%d pods at %s", len(known), all.ResourceVersion)
	}
	var paged []corev1.Pod
	options := metav1.ListOptions{Limit: 50}
	for {
		page, err := c.CoreV1().Pods("").List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		s.Change(1) // which later pages do not see
		paged = append(paged, page.Items...)
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	if len(paged) != count {
		t.Errorf("%d pods in pages", len(paged))
	}
	for _, p := range paged {
		if of := known[p.Namespace+"/"+p.Name]; of.UID != p.UID || of.ResourceVersion != p.ResourceVersion {
			t.Errorf("%s is %s in a page, %s in the list", p.Name, p.ResourceVersion, of.ResourceVersion)
		}
	}
	w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: all.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	s.Change(40)
	for range 40 + 3 {
		e := <-w.ResultChan()
		p, ok := e.Object.(*corev1.Pod)
		if !ok {
			t.Fatalf("event %+v", e)
		}
		p.TypeMeta = metav1.TypeMeta{} // of lists and gets client-go leaves it out
		known[p.Namespace+"/"+p.Name] = *p
	}
	for _, p := range known {
		got, err := c.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := json.Marshal(p); !sameJSON(t, want, got) {
			t.Errorf("%s is another pod than that of list and watch", p.Name)
		}
	}
}

func sameJSON(t *testing.T, want []byte, got *corev1.Pod) bool {
	t.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(want) == string(text)
}

// TestMetadata: who asks for metadata alone gets that of the pods, and nothing else.
func TestMetadata(t *testing.T) {
	s, c := start(t, 60)
	s.Change(5)
	all, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/v1/pods", nil)
	r.Header.Set("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list.Kind != "PartialObjectMetadataList" || len(list.Items) != len(all.Items) {
		t.Fatalf("%s of %d, %v", list.Kind, len(list.Items), err)
	}
	for i, item := range list.Items {
		got, _ := json.Marshal(item.ObjectMeta)
		if want, _ := json.Marshal(all.Items[i].ObjectMeta); string(got) != string(want) {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if bytes.Contains(w.Body.Bytes(), []byte(`"hostIP"`)) {
		t.Error("it has more than metadata")
	}
}

// TestWithoutManagedFields: the pods are the same but for that, and have the label that App says.
func TestWithoutManagedFields(t *testing.T) {
	whole, less := NewPods(120), WithoutManagedFields(120)
	for _, i := range []int{0, 49, 50, 119} {
		var pod, want corev1.Pod
		if err := errors.Join(json.Unmarshal(less.Append(nil, i, Created(i)), &pod), json.Unmarshal(whole.Append(nil, i, Created(i)), &want)); err != nil {
			t.Fatal(err)
		}
		if len(want.ManagedFields) == 0 {
			t.Fatal("no pod has managedFields")
		}
		want.ManagedFields = nil
		if text, _ := json.Marshal(want); !sameJSON(t, text, &pod) {
			t.Errorf("pod %d is another one", i)
		}
		if pod.Labels["app"] != less.App(i) || pod.Name != less.Name(i) || pod.Status.PodIP != less.IP(i) {
			t.Errorf("pod %d is %s of %s at %s", i, pod.Name, pod.Labels["app"], pod.Status.PodIP)
		}
	}
}

// TestRefuses: what it does not have is an error.
func TestRefuses(t *testing.T) {
	_, c := start(t, 10)
	if _, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"}); !apierrors.IsBadRequest(err) {
		t.Errorf("with a selector: %v", err)
	}
	if _, err := c.CoreV1().Pods("team-0000").Get(t.Context(), "service-0000-1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a pod that is not: %v", err)
	}
	if _, err := c.CoreV1().Services("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("services: %v", err)
	}
}

// TestForgets: what is watched when the history is forgotten ends as an API server ends it, and so
// does what goes on from before; a list has what changed, and can be watched from.
func TestForgets(t *testing.T) {
	s, c := start(t, 20)
	all, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	from := func(version string) watch.Interface {
		t.Helper()
		w, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		return w
	}
	under := from(all.ResourceVersion)
	s.Forget(3)
	for what, w := range map[string]watch.Interface{"under way": under, "from before": from(all.ResourceVersion)} {
		if e := <-w.ResultChan(); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
			t.Errorf("a watch %s tells %+v", what, e)
		}
	}
	again, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || again.ResourceVersion != "1023" {
		t.Fatalf("a list at %s (%v)", again.ResourceVersion, err)
	}
	w := from(again.ResourceVersion)
	s.Change(1)
	if e := <-w.ResultChan(); e.Type != watch.Modified {
		t.Errorf("a watch from then on tells %+v", e)
	}
}
