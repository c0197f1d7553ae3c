// Package drain foresees what it would do to its pods to drain a node, as kubectl drain does
// it: by evicting each, which budgets may refuse. It promises nothing: whether there is room
// for them elsewhere is the scheduler's to say, and the world may be another by then.
package drain

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/informerd/informerd/cache"
)

// Fate is what becomes of a pod.
type Fate string

// The fates, from what wants a person most to what wants none.
const (
	Blocked     Fate = "blocked"     // a budget refuses to let it go
	Lost        Fate = "lost"        // nothing makes it again
	Interrupted Fate = "interrupted" // it is the last of its kind that is ready: until it runs elsewhere there is none
	Moves       Fate = "moves"       // another one is made elsewhere
	Finished    Fate = "finished"    // it has ended, and is deleted
	Stays       Fate = "stays"       // it belongs to the node
)

// Fates are all there are, in order.
var Fates = []Fate{Blocked, Lost, Interrupted, Moves, Finished, Stays}

// Pod is one on the node, and what becomes of it.
type Pod struct {
	Key    cache.Key
	Fate   Fate
	Reason string
	// Controller is what makes it again, as Kind/name; empty: nothing.
	Controller string
	// LosesData: it has an emptyDir, which is deleted with it.
	LosesData bool
}

// Answer is what a drain would do.
type Answer struct {
	Pods   []Pod // by fate, namespace and name
	Counts map[Fate]int
	// BudgetsUnknown: budgets of some of the pods' namespaces cannot be read, so what would
	// be blocked is not known.
	BudgetsUnknown bool
}

// Readers are what is looked at. Budgets is nil where they cannot be read, and Knows says of
// which namespaces all of them can.
type Readers struct {
	Pods    *cache.Reader
	Budgets *cache.Reader
	Knows   func(namespace string) bool
}

// Foresee says what draining a node would do to the pods that r shows.
func Foresee(ctx context.Context, node string, r Readers) (*Answer, error) {
	on, err := cache.ParseFieldSelector(fields.OneTermEqualSelector("spec.nodeName", node).String())
	if err != nil {
		return nil, err
	}
	found, err := r.Pods.Select(ctx, cache.Query{Fields: on})
	if err != nil {
		return nil, err
	}
	f := &foresight{Readers: r, node: node, budgets: map[string][]*budget{}, elsewhere: map[string]bool{}}
	for _, o := range found.Objects {
		p, err := readPod(o)
		if err != nil {
			return nil, err
		}
		f.here = append(f.here, p)
	}
	a := &Answer{Pods: []Pod{}, Counts: map[Fate]int{}}
	for _, p := range f.here {
		foreseen, err := f.pod(ctx, p)
		if err != nil {
			return nil, err
		}
		a.Pods = append(a.Pods, foreseen)
		a.Counts[foreseen.Fate]++
	}
	slices.SortStableFunc(a.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(slices.Index(Fates, a.Fate), slices.Index(Fates, b.Fate)), a.Key.Compare(b.Key))
	})
	a.BudgetsUnknown = f.blind
	return a, nil
}

// foresight is what is known while one question is answered.
type foresight struct {
	Readers
	node      string
	here      []*pod
	budgets   map[string][]*budget // by namespace
	elsewhere map[string]bool      // UIDs of controllers with a ready pod on another node
	blind     bool
}

// pod says what becomes of one.
func (f *foresight) pod(ctx context.Context, p *pod) (out Pod, err error) {
	out.Key = p.key
	of := p.controller()
	if of != nil {
		out.Controller = of.Kind + "/" + of.Name
	}
	out.LosesData = p.hasEmptyDir() && !p.ended()
	switch {
	case p.Metadata.Annotations["kubernetes.io/config.mirror"] != "":
		out.Fate, out.Reason = Stays, "the kubelet makes it from a file on the node"
	case of != nil && of.Kind == "DaemonSet":
		out.Fate, out.Reason = Stays, "it belongs to a DaemonSet, which runs it on every node"
	case p.ended():
		out.Fate, out.Reason = Finished, "it has ended"
	default:
		out.Fate, out.Reason, err = f.evicted(ctx, p, of)
	}
	if out.Fate == Stays {
		out.LosesData = false
	}
	return out, err
}

// evicted says what becomes of a pod that has to go.
func (f *foresight) evicted(ctx context.Context, p *pod, of *owner) (Fate, string, error) {
	over, err := f.over(ctx, p)
	if err != nil {
		return "", "", err
	}
	if why := refusal(over, p); why != "" {
		return Blocked, why, nil
	}
	if of == nil {
		return Lost, "nothing makes it again: kubectl drain deletes it with --force only", nil
	}
	if p.ready() {
		other, err := f.hasOther(ctx, of.UID)
		if err != nil {
			return "", "", err
		}
		if !other {
			return Interrupted, fmt.Sprintf("no other pod of %s %s is ready on another node", of.Kind, of.Name), nil
		}
	}
	if of.Kind == "Job" {
		return Moves, "its Job begins it anew", nil
	}
	for _, b := range over {
		if here := b.here; here > b.allowed && p.ready() {
			return Moves, fmt.Sprintf("PodDisruptionBudget %s lets %d go at a time, and %d are here", b.name, b.allowed, here), nil
		}
	}
	return Moves, "", nil
}

// hasOther reports whether a controller has a pod that is ready on another node.
func (f *foresight) hasOther(ctx context.Context, uid string) (bool, error) {
	if known, ok := f.elsewhere[uid]; ok {
		return known, nil
	}
	all, err := f.Pods.Select(ctx, cache.Query{Terms: []cache.Term{{Index: cache.OwnerIndex, Value: uid}}})
	if err != nil {
		return false, err
	}
	for _, o := range all.Objects {
		p, err := readPod(o)
		if err != nil {
			return false, err
		}
		if p.Spec.NodeName != f.node && p.ready() {
			f.elsewhere[uid] = true
			return true, nil
		}
	}
	f.elsewhere[uid] = false
	return false, nil
}

// read reads an object into what is needed of it.
func read(o *cache.Object, into any) error {
	raw, err := o.JSON()
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", o.Key(), err)
	}
	return nil
}
