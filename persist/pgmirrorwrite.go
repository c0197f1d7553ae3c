package persist

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/informerd/informerd/cache"
)

// mirrorKeyBytes and mirrorHash are what a row is found by: names may be longer than an index
// bears.
func mirrorKeyBytes(k cache.Key) []byte {
	key := make([]byte, 0, len(k.Namespace)+len(k.Name)+1)
	return append(append(append(key, k.Namespace...), 0), k.Name...)
}

func mirrorHash(k cache.Key) []byte { return hashOf(mirrorKeyBytes(k)) }

// mirrorDigest tells the JSON of an object from what else it may be at the same
// resourceVersion: under another rule, or as another API server tells it. Rows that were
// made of it in another way than now have another one.
func mirrorDigest(data []byte) []byte {
	h := sha256.New()
	_, _ = h.Write([]byte{mirrorVersion}) // it never fails
	_, _ = h.Write(data)
	return h.Sum(nil)[:16]
}

// mirrorSum is the checksum of a row, which the database computes when it is written and when
// it is compared.
const mirrorSum = `sha256(convert_to(concat_ws(chr(31), version, kind, namespace, name, uid, resource_version,
	extract(epoch from created_at)::bigint::text, coalesce(altered, ''), labels::text, object::text), 'UTF8'))`

// mirrorPart is what one statement writes.
type mirrorPart struct {
	hashes                     hashes
	namespaces, names, uids    []string
	versions, objects, altered []string
	created                    []int64
	digests                    [][]byte
	bytes                      int
	source                     []*cache.Object // those that the rows are of
}

func (p *mirrorPart) reset() { *p = mirrorPart{} }

func (p *mirrorPart) isFull() bool { return len(p.names) >= pgRows || p.bytes >= pgBytes }

// add adds the row of an object.
func (p *mirrorPart) add(o *cache.Object, data []byte) {
	p.digests = append(p.digests, mirrorDigest(data))
	text, altered := sqlObject(data)
	p.append(o, text, altered)
}

func (p *mirrorPart) append(o *cache.Object, text, altered string) {
	p.hashes.add(mirrorKeyBytes(o.Key()))
	p.namespaces, p.names = append(p.namespaces, sqlText(o.Namespace())), append(p.names, sqlText(o.Name()))
	p.uids, p.versions = append(p.uids, sqlText(o.UID())), append(p.versions, sqlText(o.ResourceVersion()))
	p.objects, p.altered = append(p.objects, text), append(p.altered, altered)
	var created int64
	if at := o.Created(); !at.IsZero() {
		created = at.Unix()
	}
	p.created = append(p.created, created)
	p.source = append(p.source, o)
	p.bytes += len(text)
}

// half is a part of the rows.
func (p *mirrorPart) half(from, to int) *mirrorPart {
	return &mirrorPart{
		hashes:     hashes{all: p.hashes.all[from:to]},
		namespaces: p.namespaces[from:to], names: p.names[from:to], uids: p.uids[from:to], versions: p.versions[from:to],
		objects: p.objects[from:to], altered: p.altered[from:to], created: p.created[from:to], digests: p.digests[from:to],
		source: p.source[from:to],
	}
}

// write writes the rows of objects in the place of those of the same keys, and returns how
// many there were of these. It holds the JSON of a part of them.
func (m *pgMirrorSave) write(objects []*cache.Object) (replaced int, err error) {
	var part mirrorPart
	var buf []byte
	flush := func() error {
		if len(part.names) == 0 {
			return nil
		}
		n, err := m.remove(part.hashes.all)
		if replaced += n; err != nil {
			return err
		}
		m.result.Written += len(part.names)
		err = m.insert(&part)
		part.reset()
		return err
	}
	for _, o := range objects {
		if buf, err = o.AppendJSON(buf[:0]); err != nil {
			return replaced, fmt.Errorf("%s: %w", o.Key(), err)
		}
		if part.add(o, buf); part.isFull() {
			if err := flush(); err != nil {
				return replaced, err
			}
		}
	}
	return replaced, flush()
}

// insert inserts rows. Where the database refuses a value it is looked for by halves, and
// what cannot be held of an object is left out of its row: that one object is odd is no
// reason to have no mirror of the others.
func (m *pgMirrorSave) insert(part *mirrorPart) error {
	err := m.savepoint(func() error { return m.insertAll(part) })
	n := len(part.names)
	switch {
	case !isOddData(err):
		if err == nil {
			for _, altered := range part.altered {
				if altered != "" {
					m.result.Altered++
				}
			}
		}
		return err
	case n > 1:
		if err := m.insert(part.half(0, n/2)); err != nil {
			return err
		}
		return m.insert(part.half(n/2, n))
	}
	return m.insertStub(part, err)
}

// insertStub inserts the row of an object without what the database has refused.
func (m *pgMirrorSave) insertStub(part *mirrorPart, why error) error {
	o := part.source[0]
	metadata := map[string]string{"name": o.Name(), "uid": o.UID(), "resourceVersion": o.ResourceVersion()}
	if o.Namespace() != "" {
		metadata["namespace"] = o.Namespace()
	}
	stub, err := json.Marshal(map[string]any{"apiVersion": m.change.Spec.GVR.GroupVersion().String(), "kind": m.change.Spec.Kind, "metadata": metadata})
	if err != nil {
		return err
	}
	text, _ := sqlObject(stub)
	next := mirrorPart{digests: part.digests}
	next.append(o, text, sqlText("all but its identity is left out: "+why.Error()))
	m.result.Altered++
	m.p.options.Log.Warn("the mirror has no more than the identity of an object", "gvr", m.change.Spec.Resource.String(), "key", o.Key().String(), "err", why)
	return m.insertAll(&next)
}

func (m *pgMirrorSave) insertAll(part *mirrorPart) error {
	_, err := m.exec(`INSERT INTO {`+m.table+`} (cluster, "group", resource, version, kind, namespace, name, uid, resource_version, created_at, labels, object, altered, hash, digest, sum)
		SELECT r.*, `+mirrorSum+` FROM (
			SELECT $1::text AS cluster, $2::text AS "group", $3::text AS resource, $4::text AS version, $5::text AS kind, k.namespace, k.name, k.uid, k.resource_version,
				CASE WHEN k.created <> 0 THEN to_timestamp(k.created) END AS created_at,
				CASE WHEN jsonb_typeof(k.object #> '{metadata,labels}') = 'object' THEN k.object #> '{metadata,labels}' ELSE '{}'::jsonb END AS labels,
				k.object, nullif(k.altered, '') AS altered, k.hash, k.digest
			FROM (SELECT u.namespace, u.name, u.uid, u.resource_version, u.created, u.object::jsonb AS object, u.altered, u.hash, u.digest
				FROM unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::text[], $12::text[], $13::bytea[], $14::bytea[])
				AS u(namespace, name, uid, resource_version, created, object, altered, hash, digest)) AS k) AS r`,
		m.key.cluster, m.key.group, m.key.resource, sqlText(m.change.Spec.GVR.Version), sqlText(m.change.Spec.Kind),
		part.namespaces, part.names, part.uids, part.versions, part.created, part.objects, part.altered, part.hashes.all, part.digests)
	return err
}
