package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/informerd/informerd/cache"
)

const (
	// versionWait is how long a request waits for its resourceVersion: long
	// enough for some bookmarks. The first may be of a version five seconds old,
	// as etcd tells the API server no more often how far it is.
	versionWait = 10 * time.Second
	// SuspectAfter is when a copy that has not reached a version is suspected to be behind
	// only because nothing happens to its objects, or because the version never was.
	SuspectAfter = 300 * time.Millisecond
	// horizonWatch is the seconds that a watch for a bookmark lasts: the API
	// server sends one two seconds before the end, but not in shorter watches.
	horizonWatch = "4"
)

// reach waits until the copy is as new as a request for version demands: ""
// leaves that to the mode of reading, "0" demands nothing. proven is the version
// that was demanded, "" for none: the copy is complete up to there, although its
// own version may be lower.
//
// What may be seen is asked again after the wait.
func (a *API) reach(r *http.Request, t *target, version string) (proven string, err error) {
	asked := time.Now()
	proven, err = a.reachAsked(r, t, version)
	waited := proven != "" || err != nil || time.Since(asked) >= rightsInterval
	if waited && r.Context().Err() == nil {
		if refused := t.rights.recheck(r.Context()); refused != nil {
			return "", refused // who has no rights is not told either how far the copy is
		}
	}
	return proven, err
}

func (a *API) reachAsked(r *http.Request, t *target, version string) (proven string, err error) {
	if version == "0" {
		return "", nil
	}
	if version != "" {
		return version, a.reachVersion(r.Context(), t, version)
	}
	reads := a.Modes().Reads
	if h := r.Header.Get(ReadsHeader); h != "" {
		reads = Reads(h)
	}
	switch reads {
	case "", Cached:
		return a.reachOwn(r.Context(), t)
	case Consistent:
		return a.reachPresent(r.Context(), t)
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("header %s: %q is neither %s nor %s", ReadsHeader, reads, Cached, Consistent))
}

// reachPresent waits until the copy holds what the API server held when it was
// asked, which is that version. An API server that is behind the copy has been
// restored, and the copy is of the history before: it is about to be replaced, and
// until then nothing here is what the API server has.
func (a *API) reachPresent(ctx context.Context, t *target) (string, error) {
	if err := a.away(t.cluster); err != nil {
		return "", err
	}
	held := t.reader.Version()
	version, err := a.present(ctx, t)
	if err != nil {
		return "", err
	}
	if c, err := resourceversion.CompareResourceVersion(version, held); err == nil && c < 0 && !t.spec().Aggregated {
		return "", errLeftBehind(t.view, version, held)
	}
	return version, a.reachVersion(ctx, t, version)
}

// present is the version that the API server is at: of a list without a
// resourceVersion, which is of what etcd holds when it is asked.
func (a *API) present(ctx context.Context, t *target) (string, error) {
	const accept = typeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	namespace := t.namespace
	if sources := t.sources(); namespace == "" && len(sources) > 0 {
		namespace = sources[0].Namespace // all may be more than informerd may read; versions are of the cluster
	}
	doc, err := a.ask(ctx, cache.DocumentKey{Cluster: t.cluster, URI: t.resourcePath(namespace) + "?limit=1", Accept: accept}, "")
	if err != nil && isAnswer(err) { // what informerd may not is no answer to its caller
		return "", statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
			"informerd cannot learn the present version of %s: %v", t.spec().Name(), err)
	}
	if err != nil {
		return "", err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := doc.decode(&list); err != nil {
		return "", errNoUpstream(t.cluster, err)
	}
	return list.Metadata.ResourceVersion, nil
}

// sources are the watches that feed what t is about, less those that are
// refused.
func (t *target) sources() []cache.StoreSource {
	return slices.DeleteFunc(t.reader.Sources(), func(s cache.StoreSource) bool {
		return !s.Held || t.namespace != "" && s.Namespace != "" && s.Namespace != t.namespace
	})
}

// reachVersion waits until the copy is complete up to version. Versions count
// the changes of the whole cluster: a copy to whose objects nothing happens
// learns only from bookmarks that it is there, so one is asked for.
func (a *API) reachVersion(ctx context.Context, t *target, version string) error {
	waiting, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	soon, cancelSoon := context.WithTimeout(waiting, SuspectAfter)
	defer cancelSoon()
	err := t.reader.WaitVersionIn(soon, t.namespace, version)
	for errors.Is(err, cache.ErrTooNew) && waiting.Err() == nil {
		complete, herr := a.complete(waiting, t, version)
		if herr == nil && complete {
			return nil
		}
		if herr != nil { // nobody to ask: it may come by itself
			err = t.reader.WaitVersionIn(waiting, t.namespace, version)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, cache.ErrTooNew):
		return errTooNew(version, t.reader.Version())
	}
	return err
}

// before reports whether version a is known to be before b.
func before(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c < 0
}

// maxHorizons is how many namespaces are asked for their horizon at a time.
const maxHorizons = 16

// complete reports whether nothing that happened up to version is missing.
func (a *API) complete(ctx context.Context, t *target, version string) (bool, error) {
	sources := t.sources()
	if len(sources) == 0 {
		return false, errNoUpstream(t.cluster, errors.New("nothing of it may be read"))
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxHorizons)
	var short atomic.Bool
	for _, src := range sources {
		if !before(src.Version, version) {
			continue
		}
		g.Go(func() error {
			reached, err := a.horizon(ctx, t, src)
			if err == nil && before(reached, version) {
				short.Store(true)
			}
			return err
		})
	}
	resume := cache.Pause(ctx)
	err := g.Wait()
	resume()
	return !short.Load(), err
}

// horizon finds out up to which version the copy is complete as far as a source
// feeds it. Who asks at the same time gets the same answer.
func (a *API) horizon(ctx context.Context, t *target, src cache.StoreSource) (string, error) {
	gvr := t.spec().Resource.String()
	return once(ctx, &a.asking, "horizon "+gvr+" "+src.Namespace, func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, documentTimeout)
		defer cancel()
		version, err := a.askHorizon(ctx, t, src)
		if err != nil {
			a.log.Debug("cannot learn how far a copy is", "gvr", gvr, "err", err)
		}
		return version, err
	})
}

// askHorizon watches from where the copy is until a bookmark comes. Nothing but
// the events before it has happened up to there, so a copy that has them is
// complete up to the bookmark.
func (a *API) askHorizon(ctx context.Context, t *target, src cache.StoreSource) (string, error) {
	spec, up := t.spec(), a.Upstream(t.cluster)
	if up == nil || spec.Aggregated {
		return "", errNoUpstream(t.cluster, errors.New("it cannot be asked for the version of this copy"))
	}
	q := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {horizonWatch},
		"resourceVersion": {src.Version},
	}
	for name, selector := range map[string]string{"labelSelector": spec.LabelSelector, "fieldSelector": spec.FieldSelector, "shardSelector": spec.ShardSelector} {
		if selector != "" {
			q.Set(name, selector)
		}
	}
	header := http.Header{"Accept": {typeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}}
	path := t.resourcePath(src.Namespace)
	resp, err := up.Get(ctx, path+"?"+q.Encode(), header)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", answered(resp.StatusCode, path)
	}
	last, bookmark, err := readToBookmark(json.NewDecoder(resp.Body))
	if err != nil {
		return "", err
	}
	if err := a.checkBookmark(ctx, t, bookmark); err != nil {
		return "", err
	}
	return bookmark, t.reader.WaitVersionIn(ctx, src.Namespace, last)
}

// checkBookmark refuses a bookmark beyond what the API server has reached: it is of the
// history before a restore, or wrong, and says nothing of what the copy lacks.
func (a *API) checkBookmark(ctx context.Context, t *target, bookmark string) error {
	present, err := a.present(ctx, t)
	if err != nil {
		return err
	}
	if before(present, bookmark) {
		return errNoUpstream(t.cluster, fmt.Errorf("a bookmark at %s is beyond what it has reached, %s", bookmark, present))
	}
	return nil
}

// readToBookmark returns the versions of the first bookmark of a watch and of
// the last event before it, "" if there is none.
func readToBookmark(events *json.Decoder) (last, bookmark string, err error) {
	for {
		var e struct {
			Type   string
			Object struct {
				Message  string
				Metadata struct{ ResourceVersion string }
			}
		}
		if err := events.Decode(&e); err != nil {
			return "", "", fmt.Errorf("wait for a bookmark: %w", err)
		}
		switch e.Type {
		case "BOOKMARK":
			return last, e.Object.Metadata.ResourceVersion, nil
		case "ERROR":
			return "", "", fmt.Errorf("wait for a bookmark: %s", e.Object.Message)
		}
		last = e.Object.Metadata.ResourceVersion
	}
}

// resourcePath is where the API server has the objects of a namespace, or of
// all.
func (t *target) resourcePath(namespace string) string {
	gvr := t.spec().GVR
	path := "/api/" + gvr.Version
	if gvr.Group != "" {
		path = "/apis/" + gvr.Group + "/" + gvr.Version
	}
	if namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	return path + "/" + gvr.Resource
}
