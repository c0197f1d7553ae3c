package persist

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/informerd/informerd/cache"
)

// oddError says that a resource has something in it that cannot be saved. A copy without it
// must not be saved either: a watch that is resumed after it would never bring it.
type oddError struct {
	resource cache.Resource
	err      error
}

func (e *oddError) Error() string { return fmt.Sprintf("%s: %v", e.resource, e.err) }
func (e *oddError) Unwrap() error { return e.err }

// fit says what of a batch has no place in the tables. No namespace and no resource of
// Kubernetes has a zero byte, by which they are parted from names.
func fit(b *cache.Batch) error {
	if _, err := resourceName(b.Saved.Spec.Resource); err != nil {
		return err
	}
	check := func(k cache.Key) error {
		if strings.IndexByte(k.Namespace, 0) >= 0 {
			return fmt.Errorf("key %q: NUL in its namespace", k)
		}
		return nil
	}
	for i := range b.Len() {
		if err := check(b.Key(i)); err != nil {
			return err
		}
	}
	for _, k := range b.Delete {
		if err := check(k); err != nil {
			return err
		}
	}
	return nil
}

// isOddData reports whether the database refused a value, and would do so again.
func isOddData(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "54") || pg.Code == "23514")
}

func (p *Postgres) isOdd(r cache.Resource) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.odd[resourceStamp(r)]
}

// noteOdd notes after a commit which of its resources were left out, and which are not odd
// any more. What is wrong with one is said when it begins.
func (p *Postgres) noteOdd(batches []cache.Batch, unfit map[cache.Resource]error) {
	for i := range batches {
		r := batches[i].Saved.Spec.Resource
		name, err := resourceStamp(r), unfit[r]
		p.mu.Lock()
		was := p.odd[name]
		switch {
		case err != nil:
			p.odd[name] = true
			delete(p.stamps, name)
		case batches[i].Reset:
			delete(p.odd, name)
		}
		p.mu.Unlock()
		if err != nil && !was {
			p.options.Log.Error("a resource is left out of the snapshot: something in it cannot be saved", "gvr", r.String(), "err", err)
		}
	}
}
