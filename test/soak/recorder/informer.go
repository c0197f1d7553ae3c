package recorder

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

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
	noted := &noting{copy: c, target: r.Target}
	config := &rest.Config{Host: r.Target.URL, QPS: -1, UserAgent: "soak"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		noted.next = next
		return noted
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		panic(err) // there is nothing to connect to yet
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource.GVR, "", 0, toolscache.Indexers{}, nil).Informer()
	r.settler(informed{c, noted})
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

// informed is the Copy of an informer. Between two requests a reflector waits for up
// to a minute, once its server has been away a few times (30 s and as much again at
// random, defaultBackoffMax in client-go's tools/cache/reflector.go), and it waits
// twice where the first request is answered with 410: what it does not ask for, it
// cannot be told.
type informed struct {
	*checker.Copy
	requests *noting
}

// Unsettled says what was asked of late, too.
func (i informed) Unsettled() string {
	wrong := i.Copy.Unsettled()
	if wrong != "" {
		wrong += "; it asked last: " + i.requests.String()
	}
	return wrong
}

// AskingSince is when the oldest request under way was begun, now if there is none.
func (i informed) AskingSince() time.Time {
	i.requests.mu.Lock()
	defer i.requests.mu.Unlock()
	since := time.Now()
	for _, r := range i.requests.recent {
		if r.ended.IsZero() && r.begun.Before(since) {
			since = r.begun
		}
	}
	return since
}

// noting tells a Copy where its informer begins, and keeps what it asked.
type noting struct {
	next     http.RoundTripper
	copy     *checker.Copy
	target   Target
	instance string // the process that it listed last

	mu     sync.Mutex
	recent []*request // in the order they were begun; some that have ended, and all that have not
}

// request is one of an informer.
type request struct {
	what, answer string
	begun, ended time.Time // ended is zero while it is under way
}

func (n *noting) RoundTrip(r *http.Request) (*http.Response, error) {
	instance := n.target.Instance()
	asked := n.begin(r)
	resp, err := n.next.RoundTrip(r)
	if err != nil {
		n.end(asked, err.Error())
		return resp, err
	}
	n.answered(asked, resp.Status)
	resp.Body = &endedBody{ReadCloser: resp.Body, ended: func() { n.end(asked, resp.Status) }}
	if resp.StatusCode != http.StatusOK {
		return resp, nil
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

const recentRequests = 8 // enough for two rounds of watch, 410, list and watch

func (n *noting) begin(r *http.Request) *request {
	q := r.URL.Query()
	q.Del("timeoutSeconds") // it is random
	asked := &request{what: q.Encode(), begun: time.Now()}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.recent) >= recentRequests && !n.recent[0].ended.IsZero() {
		n.recent = n.recent[1:]
	}
	n.recent = append(n.recent, asked)
	return asked
}

func (n *noting) answered(asked *request, status string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked.answer = status
}

func (n *noting) end(asked *request, answer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if asked.ended.IsZero() {
		asked.answer, asked.ended = answer, time.Now()
	}
}

func (n *noting) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, r := range n.recent {
		ended := "under way"
		if !r.ended.IsZero() {
			ended = fmt.Sprintf("ended after %.1f s", r.ended.Sub(r.begun).Seconds())
		}
		all = append(all, fmt.Sprintf("%.1f s ago %s: %s, %s", time.Since(r.begun).Seconds(), r.what, r.answer, ended))
	}
	return strings.Join(all, "; ")
}

// endedBody tells when a body was closed or read to its end.
type endedBody struct {
	io.ReadCloser
	ended func()
}

func (b *endedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

func (b *endedBody) Close() error {
	b.ended()
	return b.ReadCloser.Close()
}

func parsed(resource history.Resource, o any) (string, history.Object, bool) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return "", history.Object{}, false
	}
	key, object, err := history.Parse(resource, u.DeepCopy().Object)
	return key, object, err == nil
}
