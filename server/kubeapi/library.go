package kubeapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/reply"
)

const (
	// maxDocuments and maxDocumentBytes bound what is kept.
	maxDocuments     = 256
	maxDocumentBytes = 32 << 20
)

// Documents keeps what API servers say about themselves where a restart finds
// it. Implementations are safe for concurrent use.
type Documents interface {
	Documents() ([]cache.Document, error)
	// SaveDocument saves one and forgets others in its favour.
	SaveDocument(d cache.Document, forget []cache.DocumentKey) error
	// ForgetDocuments forgets those of a cluster.
	ForgetDocuments(cluster string) error
}

// library holds what the API server said about itself, compressed, so that it is
// asked seldom and not missed while it is away. The zero value is ready.
type library struct {
	mu    sync.Mutex // guards all below
	byKey map[cache.DocumentKey]cache.Document
	bytes int
}

func (l *library) get(key cache.DocumentKey) (cache.Document, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, ok := l.byKey[key]
	return d, ok
}

// confirm notes that the API server says a document still.
func (l *library) confirm(key cache.DocumentKey, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, ok := l.byKey[key]; ok {
		d.Fetched = now
		l.byKey[key] = d
	}
}

// put returns the keys of the documents that made room: the oldest.
func (l *library) put(d cache.Document) (gone []cache.DocumentKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = map[cache.DocumentKey]cache.Document{}
	}
	l.removeLocked(d.DocumentKey)
	l.byKey[d.DocumentKey] = d
	l.bytes += len(d.Data)
	for len(l.byKey) > maxDocuments || l.bytes > maxDocumentBytes {
		oldest := l.oldestLocked()
		gone = append(gone, oldest)
		l.removeLocked(oldest)
	}
	return gone
}

func (l *library) removeLocked(key cache.DocumentKey) {
	l.bytes -= len(l.byKey[key].Data)
	delete(l.byKey, key)
}

// removeOf removes those of a cluster.
func (l *library) removeOf(cluster string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.byKey {
		if key.Cluster == cluster {
			l.removeLocked(key)
		}
	}
}

// clusters are those that there are documents of.
func (l *library) clusters() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.byKey {
		if !slices.Contains(all, key.Cluster) {
			all = append(all, key.Cluster)
		}
	}
	return all
}

// KeepOnly forgets every cluster but these.
func (a *API) KeepOnly(clusters []string) {
	for _, name := range a.documents.clusters() {
		if !slices.Contains(clusters, name) {
			a.Forget(name)
		}
	}
}

// Forget forgets what the API server of a cluster has said, for one that is there no more:
// another one may have its name one day.
func (a *API) Forget(cluster string) {
	a.keeping.Lock()
	defer a.keeping.Unlock()
	a.documents.removeOf(cluster)
	a.editions.forget(cluster)
	a.outages.end(cluster)
	a.writes.forget(cluster)
	if a.Documents == nil {
		return
	}
	if err := a.Documents.ForgetDocuments(cluster); err != nil {
		a.log.Error("documents of a cluster that was removed are still saved", "cluster", cluster, "err", err)
	}
}

func (l *library) oldestLocked() (oldest cache.DocumentKey) {
	var since time.Time
	for k, d := range l.byKey {
		if since.IsZero() || d.Fetched.Before(since) {
			oldest, since = k, d.Fetched
		}
	}
	return oldest
}

// keep holds a document, and saves it.
func (a *API) keep(key cache.DocumentKey, doc *document) {
	data, err := pack(doc.body)
	if err != nil {
		a.log.Warn("cannot keep a document of the API server", "path", key.URI, "err", err)
		return
	}
	a.keeping.RLock()
	defer a.keeping.RUnlock()
	if !slices.ContainsFunc(a.Caches.Clusters(), func(c cache.ClusterStatus) bool { return c.Name == key.Cluster }) {
		return // it was removed meanwhile
	}
	d := cache.Document{DocumentKey: key, ContentType: doc.contentType, ETag: doc.etag, Fetched: time.Now(), Data: data}
	gone := a.documents.put(d)
	if a.Documents != nil {
		a.saveDocument(d, gone)
	}
}

func (a *API) saveDocument(d cache.Document, forget []cache.DocumentKey) {
	if err := a.Documents.SaveDocument(d, forget); err != nil {
		a.log.Warn("cannot save a document of the API server", "path", d.URI, "err", err)
	}
}

// restoreDocuments takes over what was saved.
func (a *API) restoreDocuments() {
	if a.Documents == nil {
		return
	}
	saved, err := a.Documents.Documents()
	if err != nil {
		a.log.Warn("cannot read the saved documents of the API server", "err", err)
	}
	// An older informerd kept each edition of a document beside the others.
	newest, old := map[cache.DocumentKey]cache.Document{}, map[cache.DocumentKey][]cache.DocumentKey{}
	for _, d := range saved {
		was := d.DocumentKey
		if d.URI, _, _ = strings.Cut(d.URI, "?"); d.DocumentKey != was {
			old[d.DocumentKey] = append(old[d.DocumentKey], was)
		}
		if other, ok := newest[d.DocumentKey]; !ok || d.Fetched.After(other.Fetched) {
			newest[d.DocumentKey] = d
		}
	}
	for key, d := range newest {
		gone := a.documents.put(d)
		if len(old[key]) > 0 {
			a.saveDocument(d, append(gone, old[key]...))
		}
	}
}

func pack(body []byte) ([]byte, error) {
	var data bytes.Buffer
	z := gzip.NewWriter(&data)
	if _, err := z.Write(body); err != nil {
		return nil, err
	}
	err := z.Close()
	return data.Bytes(), err
}

func packedDocument(d cache.Document) *document {
	return &document{contentType: d.ContentType, etag: d.ETag, packed: d.Data}
}

// plain is the document as the API server has sent it.
func (d *document) plain() ([]byte, error) {
	if d.packed == nil {
		return d.body, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(d.packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// decode reads a document of JSON.
func (d *document) decode(into any) error {
	body, err := d.plain()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// write answers with the document: as it is held to who accepts that. It is megabytes
// long, and to unpack and compress it anew for each client takes more than all else.
func (d *document) write(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", d.contentType)
	if d.packed == nil {
		_, err := w.Write(d.body)
		return cut(err)
	}
	if reply.AcceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", strconv.Itoa(len(d.packed)))
		_, err := w.Write(d.packed)
		return cut(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(d.packed))
	if err != nil {
		return err
	}
	text := &brokenBody{ReadCloser: z}
	_, err = io.Copy(w, text)
	if text.err != nil {
		return &CutError{Cause: text.err}
	}
	return cut(err)
}
