package cache

import (
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// restoreBatch is how many records are made objects at once.
const restoreBatch = 1024

// Restoring makes objects of the records of a snapshot while they are read, on other
// processors. It holds no record for longer than that takes: all of them would take as much
// memory as the objects. It is not safe for concurrent use, and good for one Store.
type Restoring struct {
	batch   []Record
	parts   []*restoredPart
	workers errgroup.Group
	failed  atomic.Bool // a record could not be made an object
	// spare are batches that were made objects, to be filled again.
	spare chan []Record
}

// restoredPart is what became of a batch.
type restoredPart struct {
	objects []*Object
	// dictionaries are the ids of those that the objects are packed with: which there are, a
	// snapshot says only after its records.
	dictionaries []uint32
}

// NewRestoring begins with no objects. Whoever does not give it to Store.RestoreFrom calls
// Close.
func NewRestoring() *Restoring {
	r := &Restoring{spare: make(chan []Record, 2*Workers())}
	r.workers.SetLimit(Workers())
	return r
}

// Add takes a record, which with all it points to belongs to the Restoring. The error is that
// of a record so far.
func (r *Restoring) Add(rec Record) error {
	if r.batch = append(r.batch, rec); len(r.batch) >= restoreBatch {
		r.flush()
	}
	if r.failed.Load() {
		return r.workers.Wait()
	}
	return nil
}

// Close waits for what is under way, and forgets everything.
func (r *Restoring) Close() {
	_ = r.workers.Wait()
	r.batch, r.parts = nil, nil
}

func (r *Restoring) flush() {
	batch, part := r.batch, &restoredPart{}
	r.parts = append(r.parts, part)
	r.workers.Go(func() error {
		err := part.restore(batch)
		if err != nil {
			r.failed.Store(true)
		}
		clear(batch)
		select {
		case r.spare <- batch[:0]:
		default:
		}
		return err
	})
	select {
	case r.batch = <-r.spare:
	default:
		r.batch = make([]Record, 0, restoreBatch)
	}
}

func (p *restoredPart) restore(records []Record) error {
	p.objects, p.dictionaries = make([]*Object, len(records)), make([]uint32, len(records))
	var before *commonTerms
	for i := range records {
		o, err := restoreObject(&records[i], before)
		if err != nil {
			return err
		}
		before = o.common
		p.objects[i], p.dictionaries[i] = o, records[i].Dictionary
	}
	return nil
}

// objects are all, sorted by key, of a generation of index definitions.
func (r *Restoring) objects(dictionaries map[uint32]*dictionary, generation uint32) ([]*Object, error) {
	r.flush()
	if err := r.workers.Wait(); err != nil {
		return nil, err
	}
	n := 0
	for _, p := range r.parts {
		n += len(p.objects)
	}
	objs := make([]*Object, 0, n)
	for _, p := range r.parts {
		if err := p.unpackWith(dictionaries, generation); err != nil {
			return nil, err
		}
		objs = append(objs, p.objects...)
	}
	if outOfOrder(objs) >= 0 {
		slices.SortFunc(objs, compareObjects)
		if i := outOfOrder(objs); i >= 0 {
			return nil, fmt.Errorf("%s occurs twice", objs[i].Key())
		}
	}
	for i := 1; i < len(objs); i++ { // batches begin anew
		objs[i] = objs[i].like(objs[i-1])
	}
	return objs, nil
}

// outOfOrder is the position of the first object whose key is not after that of the one before
// it, -1 if there is none.
func outOfOrder(objs []*Object) int {
	for i := 1; i < len(objs); i++ {
		if compareObjects(objs[i-1], objs[i]) >= 0 {
			return i
		}
	}
	return -1
}

// unpackWith completes the objects, of which nobody else knows yet.
func (p *restoredPart) unpackWith(dictionaries map[uint32]*dictionary, generation uint32) error {
	for i, o := range p.objects {
		o.generation = generation
		if id := p.dictionaries[i]; id != 0 {
			if o.dict = dictionaries[id]; o.dict == nil {
				return fmt.Errorf("%s: dictionary %d is missing", o.Key(), id)
			}
		}
	}
	return nil
}

// restoreObject lacks its dictionary and its generation. before is of the object before.
func restoreObject(r *Record, before *commonTerms) (*Object, error) {
	id := identity{r.Namespace, r.Name, r.UID, r.ResourceVersion}
	if !id.valid() {
		return nil, fmt.Errorf("%q is no valid key", r.Key.String())
	}
	if r.Dictionary == 0 && len(r.Data) != int(r.Size) {
		return nil, fmt.Errorf("%s: %d bytes of JSON, want %d", r.Key, len(r.Data), r.Size)
	}
	o := &Object{created: r.Created, size: r.Size}
	o.setData(r.Data, nil)
	o.setTerms(split(r.Terms, before))
	for _, h := range o.terms().own {
		if t := h.Value(); isBuiltinIndex(t.Index) {
			return nil, fmt.Errorf("%s: the term %s of index %s is not before those of configured ones", r.Key, t.Value, t.Index)
		}
	}
	o.setIdentity(id)
	return o, nil
}
