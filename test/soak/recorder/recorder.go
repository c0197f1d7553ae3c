// Package recorder has one reader of each kind that informerd has: lists, pages,
// watches, streams and informers of both its APIs. Each does what a good client
// does, however ill the server is, and reports everything it is told to a
// checker.
package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/informerd/informerd/test/soak/checker"
	"github.com/informerd/informerd/test/soak/history"
)

// Target is the informerd that readers read.
type Target struct {
	Name     string
	URL      string
	Instance func() string // names its present process
}

// Options of a Recorder.
type Options struct {
	Target    Target
	Checker   *checker.Checker
	History   *history.Log
	Resources []history.Resource
	Seed      uint64
	// Every is how often readers of lists ask; default 500 ms.
	Every time.Duration
	// Few leaves out all but lists and watches.
	Few bool
}

// Settler is a reader whose copy must become that of etcd when all is quiet.
type Settler interface {
	Name() string
	Unsettled() string
}

// Asker is a Settler that decides by itself when it asks.
type Asker interface {
	// AskingSince is when it began to ask what it now waits for: now, if it does not.
	AskingSince() time.Time
}

// Recorder runs readers.
type Recorder struct {
	Options
	client *http.Client

	mu       sync.Mutex // guards all below
	settlers []Settler
	refused  map[string]int // what answers were instead of 200, by code or error
}

// New returns a Recorder.
func New(opts Options) *Recorder {
	if opts.Every == 0 {
		opts.Every = 500 * time.Millisecond
	}
	return &Recorder{
		Options: opts, refused: map[string]int{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true}},
	}
}

// Run runs all readers until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	asking := map[string]func(context.Context, *rand.Rand, string) error{
		"list": r.list, "exact": r.exact, "get": r.get,
	}
	if !r.Few {
		asking["pages"] = r.pages
		asking["consistent"] = r.consistent
		asking["query"] = r.query
		asking["kinds"] = r.kinds
	}
	var wg sync.WaitGroup
	for name, ask := range asking {
		random := rand.New(rand.NewPCG(r.Seed, hash(name)))
		wg.Go(func() { r.loop(ctx, name, random, ask) })
	}
	for _, resource := range r.Resources {
		wg.Go(func() { r.watch(ctx, resource, false) })
		if r.Few {
			continue
		}
		wg.Go(func() { r.watch(ctx, resource, true) })
		wg.Go(func() { r.events(ctx, resource) })
		wg.Go(func() { r.informer(ctx, resource) })
	}
	wg.Wait()
	return nil
}

// hash makes a seed of a name: maps have no order.
func hash(name string) (h uint64) {
	for _, b := range []byte(name) {
		h = h*31 + uint64(b)
	}
	return h
}

func (r *Recorder) loop(ctx context.Context, name string, random *rand.Rand, ask func(context.Context, *rand.Rand, string) error) {
	for ctx.Err() == nil {
		if err := ask(ctx, random, r.Target.Name+" "+name); err != nil {
			r.refuse(err)
		}
		pause(ctx, r.Every/2+time.Duration(random.Int64N(int64(r.Every))))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *Recorder) settler(s Settler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settlers = append(r.settlers, s)
}

// Settlers are the readers that keep a copy.
func (r *Recorder) Settlers() []Settler {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Settler(nil), r.settlers...)
}

// Refused counts what came instead of answers.
func (r *Recorder) Refused() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]int{}
	for what, n := range r.refused {
		all[what] = n
	}
	return all
}

func (r *Recorder) refuse(err error) {
	what := "connection"
	var s *statusError
	if errors.As(err, &s) {
		what = strconv.Itoa(s.code)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused[what]++
}

// statusError is an answer that is no success.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %.300s", e.code, e.body) }

func code(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.code
	}
	return 0
}

// answer is one that was read to its end.
type answer struct {
	checker.Freshness
	header http.Header
	body   []byte
}

// ask asks, and reads the answer to its end. What is neither a success nor a
// refusal that a client must expect is reported.
func (r *Recorder) ask(ctx context.Context, reader, path string, headers ...string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 70*time.Second)
	defer cancel()
	a := &answer{}
	a.Instance, a.Sent = r.Target.Instance(), time.Now()
	resp, err := r.open(ctx, reader, path, headers...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return nil, err
	}
	a.Received, a.header = time.Now(), resp.Header
	if r.Target.Instance() != a.Instance {
		return nil, fmt.Errorf("%s: whether %s answered, or the process after it, is not known", path, a.Instance)
	}
	a.State = resp.Header.Get("Informerd-State")
	if a.State != "" {
		seconds, err := strconv.ParseFloat(resp.Header.Get("Informerd-Age"), 64)
		if err != nil {
			a.State = "" // it says nothing of its age
		}
		a.Age = time.Duration(seconds * float64(time.Second))
	}
	return a, nil
}

func (r *Recorder) open(ctx context.Context, reader, path string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Target.URL+path, nil)
	if err != nil {
		return nil, err
	}
	for n := 0; n+1 < len(headers); n += 2 {
		req.Header.Set(headers[n], headers[n+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	refused := &statusError{resp.StatusCode, string(body)}
	switch resp.StatusCode {
	case http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusGone, http.StatusTooManyRequests, http.StatusNotFound:
	default:
		r.Checker.Report(time.Now(), "reply", reader, "GET %s: %v", path, refused)
	}
	return nil, refused
}

// kubeList is a list as the Kubernetes API has it.
type kubeList struct {
	Metadata struct {
		ResourceVersion string
		Continue        string
	}
	Items []map[string]any
}

// parseList reads a list; objects are added to all.
func parseList(resource history.Resource, body []byte, all map[string]history.Object) (version int64, next string, err error) {
	var l kubeList
	if err := json.Unmarshal(body, &l); err != nil {
		return 0, "", err
	}
	if version, err = strconv.ParseInt(l.Metadata.ResourceVersion, 10, 64); err != nil {
		return 0, "", fmt.Errorf("version of a list: %w", err)
	}
	for _, item := range l.Items {
		key, o, err := history.Parse(resource, item)
		if err != nil {
			return 0, "", err
		}
		if _, twice := all[key]; twice {
			return 0, "", fmt.Errorf("%s is twice in a list", key)
		}
		all[key] = o
	}
	return version, l.Metadata.Continue, nil
}

// path is where the Kubernetes API has a resource.
func path(r history.Resource, namespace string) string {
	p := "/api/v1/"
	if r.GVR.Group != "" {
		p = "/apis/" + r.GVR.Group + "/" + r.GVR.Version + "/"
	}
	if namespace != "" {
		p += "namespaces/" + namespace + "/"
	}
	return p + r.GVR.Resource
}

func (r *Recorder) pick(random *rand.Rand) history.Resource {
	return r.Resources[random.IntN(len(r.Resources))]
}

// bad reports an answer that cannot be read.
func (r *Recorder) bad(reader, path string, err error) {
	r.Checker.Report(time.Now(), "reply", reader, "GET %s: %v", path, err)
}

func selectionQuery(s checker.Selection) string {
	if s.Tier == "" {
		return ""
	}
	return "labelSelector=tier%3D" + s.Tier
}

func joined(path string, params ...string) string {
	var all []string
	for _, p := range params {
		if p != "" {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return path
	}
	return path + "?" + strings.Join(all, "&")
}
