package cache

import (
	"context"
	"encoding/base64"
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
		return s.nextPage(ctx, q, limit, token)
	}
	m, err := s.Matcher(q)
	if err != nil {
		return nil, err
	}
	l, err := s.leading(m, limit)
	if err != nil {
		return nil, err
	}
	if l != nil {
		about := Result{Version: l.version, Revision: l.revision, Plan: l.plan}
		return pageOf(s.pager.FirstOf(q.Token(), about, l.objects, l.total, l.list)), nil
	}
	r, err := s.selected(ctx, m)
	if err != nil {
		return nil, err
	}
	return s.FirstPage(q, r, limit), nil
}

// FirstPage cuts the first page out of r, which is the answer to q.
func (s *Store) FirstPage(q Query, r *Result, limit int) *Page {
	about := *r
	about.Objects = nil
	return pageOf(s.pager.First(q.Token(), about, r.Objects, limit))
}

func (s *Store) nextPage(ctx context.Context, q Query, limit int, token string) (*Page, error) {
	part, err := s.pager.Next(ctx, q.Token(), token, limit)
	if err != nil {
		return nil, err
	}
	return pageOf(part), nil
}

func pageOf(part *Part[Result]) *Page {
	p := &Page{Result: part.About, Continue: part.Continue, Remaining: part.Remaining}
	p.Objects = part.Objects
	return p
}

// Token stands for q in a continue token.
func (q Query) Token() string {
	sum := q.digest()
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
