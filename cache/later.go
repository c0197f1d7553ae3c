package cache

import "fmt"

// Of one history, what is read later is never of an earlier version: neither a list
// of the latest version nor any object of one. Where it is, etcd was restored from a
// backup, or another one answers, and what readers were told is not what follows.
// This is the one place for that rule.

// MayFollow returns an ErrWentBack if a list of a source, of the latest version and
// read after what is held, shows that the history is not the one of what is held.
func (s *Store) MayFollow(sourceName string, list []*Object, version string) error {
	s.mu.RLock()
	src, held := s.sources[sourceName], s.treeLocked()
	var before string
	if src != nil && src.synced {
		before = src.version
	}
	s.mu.RUnlock()
	if err := listMayFollow(before, version); err != nil {
		return err
	}
	for _, o := range list {
		if e, ok := held.Get(entry{obj: o}); ok {
			if err := objectMayFollow(e.obj, o, version); err != nil {
				return err
			}
		}
	}
	return nil
}

func listMayFollow(held, version string) error {
	if Older(version, held) {
		return fmt.Errorf("%w: a list is of resourceVersion %s and the copy of %s", ErrWentBack, version, held)
	}
	return nil
}

func objectMayFollow(held, next *Object, version string) error {
	if next.ResourceVersion() != held.ResourceVersion() && Older(next.ResourceVersion(), held.ResourceVersion()) {
		return fmt.Errorf("%w: in a list of resourceVersion %s, %s has %s and %s here", ErrWentBack, version, next.Key(), next.ResourceVersion(), held.ResourceVersion())
	}
	return nil
}
