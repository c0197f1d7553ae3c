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
	return s.whole().Page(ctx, q, limit, token)
}

// FirstPage cuts the first page out of r, which is the answer to q.
func (s *Store) FirstPage(q Query, r *Result, limit int) *Page {
	return s.whole().FirstPage(q, r, limit)
}

// Page is Store.Page.
func (r *Reader) Page(ctx context.Context, q Query, limit int, token string) (*Page, error) {
	if token != "" {
		part, err := r.store.pager.Next(ctx, r.question(q), token, limit)
		if err != nil {
			return nil, err
		}
		return pageOf(part), nil
	}
	m, err := r.Matcher(q)
	if err != nil {
		return nil, err
	}
	l, err := r.store.leading(m, limit)
	if err != nil {
		return nil, err
	}
	if l != nil {
		about := Result{Version: l.version, Revision: l.revision, Plan: l.plan}
		return pageOf(r.store.pager.FirstOf(r.question(q), about, l.objects, l.total, l.list)), nil
	}
	found, err := r.store.selected(ctx, m)
	if err != nil {
		return nil, err
	}
	return r.FirstPage(q, found, limit), nil
}

// FirstPage is Store.FirstPage.
func (r *Reader) FirstPage(q Query, found *Result, limit int) *Page {
	about := *found
	about.Objects, about.located = nil, located{} // not kept for further pages
	page := pageOf(r.store.pager.First(r.question(q), about, found.Objects, limit))
	page.located = found.located.first(len(page.Objects))
	return page
}

// PageAt is Store.PageAt.
func (r *Reader) PageAt(ctx context.Context, q Query, limit int, version string) (*Page, error) {
	if err := checkVersion(version); err != nil {
		return nil, err
	}
	found, err := r.store.selectAt(ctx, q, r.scope, version)
	if err != nil {
		return nil, err
	}
	return r.FirstPage(q, found, limit), nil
}

func (r *Reader) question(q Query) Question {
	return Question{Query: q.Token(), Scope: r.scope.Digest(), Owner: r.owner}
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
