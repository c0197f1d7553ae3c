package kubeapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/informerd/informerd/cache"
)

const (
	// versionWait is how long a request waits for its resourceVersion: long
	// enough for a bookmark.
	versionWait = 5 * time.Second
	// horizonAfter is when a copy that has not reached a version is suspected to
	// be behind only because nothing happens to its objects.
	horizonAfter = 300 * time.Millisecond
	// horizonWatch is the seconds that a watch for a bookmark lasts: the API
	// server sends one two seconds before the end, but not in shorter watches.
	horizonWatch = "4"
)

// reach waits until the copy is as new as a request for version demands: ""
// leaves that to the mode of reading, "0" demands nothing.
func (a *API) reach(r *http.Request, t *target, version string) error {
	if version != "" {
		return a.reachVersion(r.Context(), t, version)
	}
	reads := a.Modes().Reads
	if h := r.Header.Get(ReadsHeader); h != "" {
		reads = Reads(h)
	}
	switch reads {
	case "", Cached:
		return nil
	case Consistent:
		return a.reachPresent(r.Context(), t)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("header %s: %q is neither %s nor %s", ReadsHeader, reads, Cached, Consistent))
}

// reachPresent waits until the copy holds what the API server held when it was
// asked.
func (a *API) reachPresent(ctx context.Context, t *target) error {
	const accept = typeJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	doc, err := a.ask(ctx, cache.DocumentKey{Cluster: t.cluster, URI: t.resourcePath("") + "?limit=1", Accept: accept}, "")
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(doc.body, &list); err != nil {
		return errNoUpstream(t.cluster, err)
	}
	return a.reachVersion(ctx, t, list.Metadata.ResourceVersion)
}

// reachVersion waits until the copy is complete up to version. Versions count
// the changes of the whole cluster: a copy to whose objects nothing happens
// learns only from bookmarks that it is there, so one is asked for.
func (a *API) reachVersion(ctx context.Context, t *target, version string) error {
	waiting, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	soon, cancelSoon := context.WithTimeout(waiting, horizonAfter)
	defer cancelSoon()
	err := t.store.WaitVersion(soon, version)
	for errors.Is(err, cache.ErrTooNew) && waiting.Err() == nil {
		reached, herr := a.horizon(waiting, t)
		if herr == nil && !before(reached, version) {
			return nil
		}
		if herr != nil { // nobody to ask: it may come by itself
			err = t.store.WaitVersion(waiting, version)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, cache.ErrTooNew):
		return errTooNew(version, t.store.Version())
	}
	return err
}

// before reports whether version a is known to be before b.
func before(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || c < 0
}

// horizon finds out up to which version the copy is complete. Who asks at the
// same time gets the same answer.
func (a *API) horizon(ctx context.Context, t *target) (string, error) {
	ch := a.asking.DoChan("horizon "+t.spec().Resource.String(), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), documentTimeout)
		defer cancel()
		return a.askHorizon(ctx, t)
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case answer := <-ch:
		if answer.Err != nil {
			a.log.Debug("cannot learn how far a copy is", "gvr", t.spec().Resource.String(), "err", answer.Err)
			return "", answer.Err
		}
		return answer.Val.(string), nil
	}
}

// askHorizon watches from where the copy is until a bookmark comes. Nothing but
// the events before it has happened up to there, so a copy that has them is
// complete up to the bookmark.
func (a *API) askHorizon(ctx context.Context, t *target) (string, error) {
	spec, up := t.spec(), a.Upstream(t.cluster)
	if up == nil || spec.Aggregated || !t.store.Watches("") {
		return "", errNoUpstream(t.cluster, errors.New("it cannot be asked for the version of this copy"))
	}
	q := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {horizonWatch},
		"resourceVersion": {t.store.Version()},
	}
	for name, selector := range map[string]string{"labelSelector": spec.LabelSelector, "fieldSelector": spec.FieldSelector} {
		if selector != "" {
			q.Set(name, selector)
		}
	}
	header := http.Header{"Accept": {typeJSON + ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}}
	resp, err := up.Get(ctx, t.resourcePath("")+"?"+q.Encode(), header)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", answered(resp.StatusCode, t.resourcePath(""))
	}
	last, bookmark, err := readToBookmark(json.NewDecoder(resp.Body))
	if err != nil {
		return "", err
	}
	return bookmark, t.store.WaitVersion(ctx, last)
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
