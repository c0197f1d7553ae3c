package cache

import (
	"container/list"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Pager cuts lists of objects into pages and keeps what is left of each for
// whoever comes back with its token. All pages of a list are of the moment of
// the first. About is what is the same for all pages of a list.
type Pager[About any] struct {
	name  string // of what is listed, so that tokens are not mixed up
	epoch string // tells Pagers apart: tokens of another one have expired
	opts  StoreOptions

	mu      sync.Mutex // guards all below
	last    uint64
	byID    map[uint64]*list.Element
	order   list.List // of *cursor; the one used last in front
	objects int
	waiting bool // expire will be called
}

// Part is one page of a list.
type Part[About any] struct {
	About   About
	Objects []*Object
	// Continue asks for the next page; empty on the last one.
	Continue string
	// Remaining is how many objects come after this page.
	Remaining int
}

// NewPager returns a Pager for lists of what name says, bounded by opts.
func NewPager[About any](name, epoch string, opts StoreOptions) *Pager[About] {
	return &Pager[About]{name: name, epoch: epoch, opts: opts.withDefaults(), byID: map[uint64]*list.Element{}}
}

// First returns the first page of objects, all of them if limit is not positive.
// query stands for what was asked.
func (p *Pager[About]) First(query string, about About, objects []*Object, limit int) *Part[About] {
	c := &cursor[About]{query: query, about: about, objects: objects, total: len(objects)}
	if limit > 0 && limit < len(objects) {
		p.add(c)
	}
	return p.cut(c, objects, 0, limit)
}

// FirstOf returns the first page of a list of which no more than its first limit
// objects are known, and how many there are in total: that is more. complete
// makes the whole list when another page is asked for, of the same moment.
func (p *Pager[About]) FirstOf(query string, about About, objects []*Object, total int, complete func(context.Context) ([]*Object, error)) *Part[About] {
	c := &cursor[About]{query: query, about: about, total: total, complete: complete}
	p.add(c)
	return p.cut(c, objects, 0, len(objects))
}

// Next returns the page that a token asks for. The same token gives the same
// page again, until it expires: then the error is ErrExpired. It has expired, too, when
// objects of the page were read under a rule that another has taken the place of. A
// token that is malformed or of another query is an *InvalidError.
func (p *Pager[About]) Next(ctx context.Context, query, token string, limit int) (*Part[About], error) {
	t, err := parseToken(token)
	switch {
	case err != nil:
		return nil, err
	case t.Resource != p.name:
		return nil, invalidf("continue", "this token is of a list of another resource")
	case t.Query != query:
		return nil, invalidf("continue", "this token is of another query; repeat the parameters of the first page")
	case t.Epoch != p.epoch:
		return nil, ErrExpired
	}
	c := p.get(t.Cursor)
	if c == nil {
		return nil, ErrExpired
	}
	if t.Offset < 0 || t.Offset > c.total || c.query != t.Query {
		return nil, errToken
	}
	objects, err := c.whole(ctx)
	if err != nil {
		return nil, err
	}
	part := p.cut(c, objects, t.Offset, limit)
	if slices.ContainsFunc(part.Objects, (*Object).outdated) {
		return nil, ErrExpired
	}
	return part, nil
}

// cut takes the page at offset out of the objects of c.
func (p *Pager[About]) cut(c *cursor[About], objects []*Object, offset, limit int) *Part[About] {
	end := c.total
	if limit > 0 && limit < end-offset {
		end = offset + limit
	}
	part := &Part[About]{About: c.about, Objects: objects[offset:end:end]}
	if part.Remaining = c.total - end; part.Remaining > 0 {
		part.Continue = pageToken{p.name, p.epoch, c.id, end, c.query}.String()
	}
	return part
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

// cursor is a list that is being read page by page. What its pages are never
// changes.
type cursor[About any] struct {
	id    uint64
	query string
	about About
	total int
	used  time.Time

	completing sync.Mutex // guards objects and complete
	objects    []*Object
	complete   func(context.Context) ([]*Object, error) // nil once it was called
}

// whole is the list as a whole.
func (c *cursor[About]) whole(ctx context.Context) ([]*Object, error) {
	c.completing.Lock()
	defer c.completing.Unlock()
	if c.complete != nil {
		objects, err := c.complete(ctx)
		if err != nil {
			return nil, err
		}
		c.objects, c.complete = objects, nil
	}
	return c.objects, nil
}

func (p *Pager[About]) add(c *cursor[About]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	c.id, c.used = p.last, time.Now()
	p.byID[c.id] = p.order.PushFront(c)
	p.objects += c.total
	p.evictLocked()
	p.expireLaterLocked()
}

// expireLaterLocked sees to it that lists expire that nobody comes back for: they
// hold on to all versions that their objects had.
func (p *Pager[About]) expireLaterLocked() {
	oldest := p.order.Back()
	if oldest == nil || p.waiting {
		return
	}
	p.waiting = true
	time.AfterFunc(p.opts.CursorAge-time.Since(oldest.Value.(*cursor[About]).used), p.expire)
}

func (p *Pager[About]) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
	p.evictLocked()
	p.expireLaterLocked()
}

func (p *Pager[About]) get(id uint64) *cursor[About] {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.evictLocked()
	e := p.byID[id]
	if e == nil {
		return nil
	}
	c := e.Value.(*cursor[About])
	c.used = time.Now()
	p.order.MoveToFront(e)
	return c
}

// evictLocked drops lists that are too many, too old or too large together; what
// was used least recently goes first. It keeps the newest even if it is too
// large on its own: its reader has just been given a token.
func (p *Pager[About]) evictLocked() {
	for e := p.order.Back(); e != nil; e = p.order.Back() {
		c := e.Value.(*cursor[About])
		tooMany := p.order.Len() > 1 && (p.order.Len() > p.opts.Cursors || p.objects > p.opts.CursorObjects)
		if !tooMany && time.Since(c.used) < p.opts.CursorAge {
			return
		}
		p.order.Remove(e)
		delete(p.byID, c.id)
		p.objects -= c.total
	}
}
