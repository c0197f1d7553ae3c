package recorder

import (
	"context"
	"net/http"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
)

// informer runs an informer of client-go.
func (r *Recorder) informer(ctx context.Context, resource history.Resource) {
	c := r.Checker.Copy(r.Target.Name+" informer", resource.Name())
	config := &rest.Config{Host: r.Target.URL, QPS: -1, UserAgent: "soak"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &noting{next: next, copy: c, target: r.Target} })
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		panic(err) // there is nothing to connect to yet
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource.GVR, "", 0, toolscache.Indexers{}, nil).Informer()
	r.settler(c)
	set := func(o any) {
		if key, parsed, ok := parsed(resource, o); ok {
			c.Set(key, parsed)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, o any) { set(o) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			if key, _, ok := parsed(resource, o); ok {
				c.Remove(key)
			}
		},
	})
	if err != nil {
		panic(err) // it has just been made
	}
	informer.Run(ctx.Done())
}

// noting tells a Copy where its informer begins.
type noting struct {
	next     http.RoundTripper
	copy     *checker.Copy
	target   Target
	instance string // the process that it listed last
}

func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	instance := n.target.Instance()
	resp, err := n.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	q := r.URL.Query()
	version, _ := strconv.ParseInt(q.Get("resourceVersion"), 10, 64)
	if q.Get("watch") != "" && q.Get("sendInitialEvents") != "true" && version > 0 {
		n.copy.Resume(version)
	} else {
		// A new process begins with what was saved, and says so.
		n.copy.Listed(instance != n.instance && resp.Header.Get("Informerd-State") != "live")
		n.instance = instance
	}
	return resp, nil
}

func parsed(resource history.Resource, o any) (string, history.Object, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return "", history.Object{}, false
	}
	key, object, err := history.Parse(resource, u.DeepCopy().Object)
	return key, object, err == nil
}
