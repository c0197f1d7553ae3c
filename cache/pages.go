package cache

import (
	"container/list"
	"context"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"
)

// Page is a part of a Result.
type Page struct {
	Result
	// Continue asks for the next page; empty on the last one.
	Continue string
	// Remaining is how many objects come after this page.
	Remaining int
}

// Page returns up to limit objects that match q, all of them if limit is not
// positive, and a token for the rest. All pages of a list are of the version of
// the first. A token can be used again, and gives the same page again, until it
// expires: then the error is ErrExpired. A token that is malformed or of
// another query is an *InvalidError.
func (s *Store) Page(ctx context.Context, q Query, limit int, token string) (*Page, error) {
	if token != "" {
		return s.nextPage(q, limit, token)
	}
	r, err := s.Select(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.firstPage(q, r, limit), nil
}

// firstPage cuts the first page out of r and keeps the rest for those to come.
func (s *Store) firstPage(q Query, r *Result, limit int) *Page {
	if limit <= 0 || limit >= len(r.Objects) {
		return &Page{Result: *r}
	}
	c := &cursor{digest: q.token(), result: *r}
	s.cursors.add(c)
	return s.page(c, 0, limit)
}

func (s *Store) nextPage(q Query, limit int, token string) (*Page, error) {
	t, err := parseToken(token)
	switch {
	case err != nil:
		return nil, err
	case t.Resource != s.spec.Resource.String():
		return nil, invalidf("continue", "this token is of a list of another resource")
	case t.Query != q.token():
		return nil, invalidf("continue", "this token is of another query; repeat the parameters of the first page")
	case t.Epoch != s.epoch:
		return nil, ErrExpired
	}
	c := s.cursors.get(t.Cursor)
	if c == nil {
		return nil, ErrExpired
	}
	if t.Offset < 0 || t.Offset > len(c.result.Objects) || c.digest != t.Query {
		return nil, errToken
	}
	return s.page(c, t.Offset, limit), nil
}

// page cuts the page at offset out of the list that c holds.
func (s *Store) page(c *cursor, offset, limit int) *Page {
	p := &Page{Result: c.result}
	end := len(c.result.Objects)
	if limit > 0 && limit < end-offset {
		end = offset + limit
	}
	p.Objects = c.result.Objects[offset:end:end]
	if p.Remaining = len(c.result.Objects) - end; p.Remaining > 0 {
		p.Continue = pageToken{s.spec.Resource.String(), s.epoch, c.id, end, c.digest}.String()
	}
	return p
}

// token stands for q in a continue token.
func (q Query) token() string {
	sum := q.digest()
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// pageToken says where a paged list goes on. Clients see it encoded and must
// not look inside.
type pageToken struct {
	Resource string `json:"r"`
	Epoch    string `json:"e"`
	Cursor   uint64 `json:"c"`
	Offset   int    `json:"o"`
	Query    string `json:"q"`
}

var errToken = &InvalidError{Parameter: "continue", Message: "this is no token of a list; use metadata.continue of the page before, unchanged"}

func (t pageToken) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseToken(s string) (t pageToken, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || json.Unmarshal(b, &t) != nil {
		return pageToken{}, errToken
	}
	return t, nil
}

// cursor is a list that is being read page by page. But for its place in
// cursors it is immutable.
type cursor struct {
	id     uint64
	digest string
	result Result
	used   time.Time
}

// cursors are the paged lists under way, bounded in number, age and objects.
// What was used least recently goes first.
type cursors struct {
	opts StoreOptions

	mu      sync.Mutex // guards all below
	last    uint64
	byID    map[uint64]*list.Element
	order   list.List // of *cursor; the one used last in front
	objects int
}

func (c *cursors) init(opts StoreOptions) {
	c.opts = opts
	c.byID = map[uint64]*list.Element{}
	c.order.Init()
}

func (c *cursors) add(cur *cursor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	cur.id, cur.used = c.last, time.Now()
	c.byID[cur.id] = c.order.PushFront(cur)
	c.objects += len(cur.result.Objects)
	c.evictLocked()
}

func (c *cursors) get(id uint64) *cursor {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evictLocked()
	e := c.byID[id]
	if e == nil {
		return nil
	}
	cur := e.Value.(*cursor)
	cur.used = time.Now()
	c.order.MoveToFront(e)
	return cur
}

// evictLocked keeps the newest cursor even if it is too large on its own: its
// reader has just been given a token.
func (c *cursors) evictLocked() {
	for e := c.order.Back(); e != nil; e = c.order.Back() {
		cur := e.Value.(*cursor)
		tooMany := c.order.Len() > 1 && (c.order.Len() > c.opts.Cursors || c.objects > c.opts.CursorObjects)
		if !tooMany && time.Since(cur.used) < c.opts.CursorAge {
			return
		}
		c.order.Remove(e)
		delete(c.byID, cur.id)
		c.objects -= len(cur.result.Objects)
	}
}
