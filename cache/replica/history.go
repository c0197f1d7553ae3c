package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/informerd/informerd/cache"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// verdict is what is found out about the history behind a resourceVersion: whether
// the server that answers now can go on from where the copy is. This file is the
// one place where that is judged, and it judges by definite facts only: the UID of
// the cluster, the version of a consistent read, and objects as etcd has them.
// docs/guarantees.md says what these cannot tell.
type verdict int

const (
	// same: nothing speaks against going on.
	same verdict = iota
	// unknown: the server did not answer. It is asked again.
	unknown
	// missed: the history is the same, and the copy lacks a change of it. The
	// resource is listed anew, for the difference.
	missed
	// forgotten: the server does not know any more what was at the version of the copy.
	// The resource is listed anew, for the difference.
	forgotten
	// lacks: the server's history has not, at the version of the copy, an object that is
	// held. It was restored, or a deletion was never told: in both cases what readers of
	// the resource were told is wrong, and they begin anew. A list shows by itself what
	// it follows.
	lacks
	// goneBack: etcd itself is at a lower version than the copy, or has an object
	// as it was before: it was restored from a backup.
	goneBack
	// other: another cluster answers.
	other
)

// judgement is a verdict and what it is based on. err is nil for same.
type judgement struct {
	verdict verdict
	err     error
}

// errOtherHistory means that versions of the copy mean nothing to the server any
// more, which is proven: a successor is listed from the beginning.
var errOtherHistory = errors.New("the server's history is not the one the copy was made from")

// errRewritten is an errOtherHistory of one cluster: it was restored from a backup.
var errRewritten = fmt.Errorf("%w: it was rolled back", errOtherHistory)

// errLacks ends the copy of one resource like an errOtherHistory, which it may be. It
// says nothing of others.
var errLacks = fmt.Errorf("%w, or a deletion was never told", errOtherHistory)

// otherClusterError is an errOtherHistory: another cluster answers than was
// identified.
type otherClusterError struct{ was, uid, version string }

func (e *otherClusterError) Error() string {
	return fmt.Sprintf("%v: kube-system has UID %s, not %s", errOtherHistory, e.uid, e.was)
}

func (e *otherClusterError) Unwrap() error { return errOtherHistory }

// historyTimeout bounds all questions of one judgement.
const historyTimeout = 30 * time.Second

// newestAsked is how many of its newest objects a source compares with the
// server's. They are those that a restored backup most probably lacks.
const newestAsked = 5

// judge finds out whether the server can be gone on with from version.
func (s *source) judge(ctx context.Context, version string) judgement {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	if _, err := strconv.ParseUint(version, 10, 64); err != nil {
		return judgement{other, fmt.Errorf("%w: resourceVersion %q is no number", errOtherHistory, version)}
	}
	reached, j := s.judgeCluster(ctx, version)
	if j.verdict != same {
		return j
	}
	if !reached {
		if j := s.judgeVersion(ctx, version); j.verdict != same {
			return j
		}
	}
	return s.judgeNewest(ctx, version, !reached)
}

// judgeCluster asks for one small object, never a list. reached is true when the
// answer shows that the cluster's etcd has reached version.
func (s *source) judgeCluster(ctx context.Context, version string) (reached bool, j judgement) {
	c := s.cluster
	uid, rc := c.identityNow()
	if uid == addressIdentity(rc) {
		return false, judgement{}
	}
	at := version
	if s.ownHistory() {
		at = ""
	}
	ns, err := c.systemNamespace(ctx, at)
	if isFuture(err) {
		// The server's caches are not so far. That proves nothing: it may lag, and a
		// quiet cache learns only now and then how far etcd is.
		at = ""
		ns, err = c.systemNamespace(ctx, at)
	}
	switch {
	case err == nil && string(ns.UID) != uid:
		gitVersion, err := c.serverVersion(ctx)
		if err != nil {
			return false, judgement{unknown, err}
		}
		return false, judgement{other, &otherClusterError{was: uid, uid: string(ns.UID), version: gitVersion}}
	case err == nil:
		return at != "", judgement{}
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return false, judgement{}
	default:
		return false, judgement{unknown, fmt.Errorf("check the server's history: %w", err)}
	}
}

// judgeVersion asks etcd itself, by a consistent read, how far it is.
func (s *source) judgeVersion(ctx context.Context, version string) judgement {
	if s.spec.Aggregated {
		return judgement{}
	}
	present, err := s.present(ctx)
	if err == nil && cache.Older(present, version) {
		// Another informerd may just not be as far again as it was.
		present, err = s.present(consistently(ctx))
	}
	switch {
	case err != nil:
		return judgement{unknown, err}
	case cache.Older(present, version):
		return judgement{goneBack, fmt.Errorf("%w: etcd is at resourceVersion %s and the copy at %s", errRewritten, present, version)}
	}
	return judgement{}
}

// newest are the newest objects held, the newest first: those that noteListed found, unless
// something has happened since.
func (s *source) newest() []*cache.Object {
	now := s.store.Versions()[s.namespace]
	s.mu.Lock()
	listed, newest := s.listed, s.newestListed
	s.mu.Unlock()
	held := s.store.Holdings(s.namespace)
	if listed == now && newest != nil && !slices.ContainsFunc(newest, func(o *cache.Object) bool {
		as, _, ok := held.Get(o.Key())
		return !ok || as.UID() != o.UID() || as.ResourceVersion() != o.ResourceVersion()
	}) {
		return newest
	}
	return held.Newest(newestAsked)
}

// forgetNewest lets go of what noteListed found: it is to be old by the next time.
func (s *source) forgetNewest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newestListed = nil
}

// judgeNewest compares the newest objects held with what etcd has. Everything up
// to version is held: what is no newer there must be the same here. asked says that
// judgeVersion has been: another informerd may have reached version in its copy of the
// namespaces, and not in that of the resource.
func (s *source) judgeNewest(ctx context.Context, version string, asked bool) judgement {
	ctx, answer := withAnswer(ctx)
	var gone, unsure []*cache.Object // those unsure are gone, or were changed since
	for _, o := range s.newest() {
		meta, err := s.objectMetadata(ctx, s.path(o.Namespace())+"/"+o.Name())
		if !asked && answer.ofReplica() {
			if j := s.judgeVersion(ctx, version); j.verdict != same {
				return j
			}
			asked = true
			meta, err = s.objectMetadata(ctx, s.path(o.Namespace())+"/"+o.Name())
		}
		switch {
		case apierrors.IsNotFound(err) && !isUnserved(err):
			gone, unsure = append(gone, o), append(unsure, o)
		case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
			// Whoever may list but not get cannot compare objects. The version was
			// asked of etcd instead.
			return s.judgeVersion(ctx, version)
		case err != nil:
			return judgement{unknown, fmt.Errorf("check the newest object: %w", err)}
		default:
			equal, j := compareNewest(o, meta, version)
			if j.verdict != same {
				return j
			}
			if equal {
				s.doubt(gone)
				return s.judgePast(ctx, unsure, version) // what is older than it is no surer sign
			}
			unsure = append(unsure, o)
		}
	}
	s.doubt(gone)
	return s.judgePast(ctx, unsure, version)
}

// compareNewest compares an object of a copy that is complete up to version with
// what etcd has. One that was changed after version says nothing: neither equal nor
// a verdict.
func compareNewest(o *cache.Object, meta *metav1.PartialObjectMetadata, version string) (equal bool, j judgement) {
	their, differ := meta.ResourceVersion, ""
	switch {
	case string(meta.UID) == o.UID() && their == o.ResourceVersion():
		return true, judgement{}
	case cache.Newer(their, version):
		return false, judgement{}
	default:
		differ = fmt.Sprintf("at %s, %s has resourceVersion %s there and %s here", version, o.Key(), their, o.ResourceVersion())
	}
	if cache.Newer(their, o.ResourceVersion()) {
		return false, judgement{missed, errors.New(differ)}
	}
	return false, judgement{goneBack, fmt.Errorf("%w: %s", errRewritten, differ)}
}

// judgePast compares objects that are gone, or were changed after version, with what the
// history of the server had at version itself: where the newest objects were changed
// while nobody looked, their present says nothing of the past. All are asked for: that
// one is as it was says nothing of the next. etcd is compacted every five minutes: what
// it does not know any more is listed for the difference, which shows by itself what it
// follows.
func (s *source) judgePast(ctx context.Context, unsure []*cache.Object, version string) (j judgement) {
	equal := 0
	for _, o := range unsure {
		meta, err := s.metadataThen(ctx, o.Key(), version)
		switch {
		case isExpired(err):
			return judgement{forgotten, fmt.Errorf("what %s was at %s is not known any more", o.Key(), version)}
		case isFuture(err):
			return s.judgeVersion(ctx, version)
		case apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsInvalid(err):
			return judgement{} // it cannot be asked
		case err != nil:
			return judgement{unknown, fmt.Errorf("check an object of the past: %w", err)}
		case meta == nil:
			j = judgement{lacks, fmt.Errorf("%w: at %s, %s is not there and has resourceVersion %s here", errLacks, version, o.Key(), o.ResourceVersion())}
		default:
			alike, found := compareNewest(o, meta, version)
			switch {
			case alike:
				equal++
			case found.verdict == goneBack:
				return found
			case j.verdict == same:
				j = found
			}
		}
	}
	if equal == len(unsure) {
		s.doubt(nil) // what is gone was deleted since, which the watch tells
	}
	return j
}

// metadataThen is that of an object at a version of the past, exactly; nil if it was
// not there. Of one name the API server reads one key, at that version, of its etcd.
func (s *source) metadataThen(ctx context.Context, key cache.Key, version string) (*metav1.PartialObjectMetadata, error) {
	opts := metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String(),
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		Limit: 1,
	}
	list, err := s.cluster.metadata().Resource(s.spec.GVR).Namespace(key.Namespace).List(ctx, opts)
	if isUnserved(err) { // see objectMetadata
		list, err = s.cluster.streamMetadata().Resource(s.spec.GVR).Namespace(key.Namespace).List(ctx, opts)
	}
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return &list.Items[0], nil
}

// doubts are objects that are held and that the server did not have when its
// history was judged. Either they were deleted since, which the watch is about to
// tell, or the server was rolled back to before they were made, of which no watch
// tells: no copy is proven current that still holds one of them.
type doubts struct {
	objects []*cache.Object
	since   time.Time
	// by is the version of a consistent read after the objects were found gone: a
	// watch that was told everything up to it was told of their deletion. "" until
	// it was asked for.
	by string
}

func (s *source) doubt(gone []*cache.Object) {
	s.mu.Lock()
	same := slices.EqualFunc(gone, s.doubts.objects, func(a, b *cache.Object) bool { return a.Key() == b.Key() && a.UID() == b.UID() })
	if !same || len(gone) == 0 { // else it lasts, however often it is asked
		s.doubts = doubts{objects: gone, since: time.Now()}
	}
	s.mu.Unlock()
	if len(gone) > 0 {
		s.update(func(h *standing) {
			h.doubted(fmt.Errorf("the server does not have %s, and has not said so", gone[0].Key()))
		})
	}
}

// undoubted reports whether no doubt is left, now that the watch has told
// everything up to version.
func (s *source) undoubted(version string) bool {
	s.mu.Lock()
	d := s.doubts
	s.mu.Unlock()
	for _, o := range d.objects {
		held, ok := s.store.Get(o.Key())
		if !ok || held.UID() != o.UID() {
			continue
		}
		if d.by != "" && !cache.Newer(d.by, version) {
			// The deletion is not in this history, or was not told: a list shows it.
			s.demandRelist(fmt.Sprintf("the server does not have %s and never deleted it", o.Key()))
		} else if d.by == "" && time.Since(d.since) > s.grace {
			s.askDoubt()
		}
		return false
	}
	return true
}

// askDoubt finds out, once and beside the watch, up to which version the watch must
// have told of a deletion.
func (s *source) askDoubt() {
	s.beside(func(ctx context.Context) error {
		present, err := s.present(ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.doubts.by = present
		s.mu.Unlock()
		return nil
	})
}
