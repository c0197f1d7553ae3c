package replica

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/informerd/informerd/cache"
)

// allowed finds out what of the resource may be listed and watched: "" for all
// namespaces, or those namespaces that are known by name (of the configuration,
// the kubeconfig's context, or the copy of the namespaces) and that the rule
// covers. progress is told how many of them it has asked about.
func (f *feed) allowed(ctx context.Context, progress func(asked, of int)) ([]string, error) {
	i := f.informer
	may := func(namespace string) (bool, error) { return i.cluster.rights.may(ctx, i.resource.GVR, namespace) }
	all, err := may("")
	if err != nil {
		return nil, err
	}
	if all {
		return []string{""}, nil
	}
	if !f.spec.Namespaced {
		return nil, nil
	}
	var out []string
	candidates := i.candidates(f.spec)
	for n, ns := range candidates {
		progress(n, len(candidates))
		ok, err := may(ns)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, ns)
		}
	}
	if len(out) > 0 {
		// Had the rights come while the questions were asked, only some of the
		// namespaces would be among the answers.
		if all, err := may(""); err != nil || all {
			return []string{""}, err
		}
	}
	return out, nil
}

// progressPause is the time between two words on how far the questions for rights are.
const progressPause = 10 * time.Second

// progress says now and then, in the log and as the reason of the state, how many
// namespaces were asked about. Few are asked about in no time.
func (f *feed) progress(cause error) func(asked, of int) {
	said := time.Now()
	return func(asked, of int) {
		if time.Since(said) < progressPause {
			return
		}
		said = time.Now()
		f.informer.log.Info("finding out which namespaces may be read", "asked", asked, "of", of)
		sources, _ := f.running()
		for _, s := range sources {
			s.update(func(h *standing) {
				h.doubted(fmt.Errorf("%w; asked about %d of %d namespaces what may be read", cause, asked, of))
			})
		}
	}
}

// candidates are the namespaces known by name, sorted.
func (i *Informer) candidates(spec cache.Spec) []string {
	names := slices.Clone(spec.Namespaces)
	names = append(names, i.cluster.contextNamespaces()...)
	if s := i.factory.namespaceStore(i.resource.Cluster); s != nil {
		for _, o := range s.Holdings("").All() {
			names = append(names, o.Name())
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(ns string) bool {
		return ns == "" || cache.IsGlob(ns) || !spec.Selects(ns)
	})
}
