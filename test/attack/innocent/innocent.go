// Package innocent is a user who asks little and wants an answer each time: some short
// questions, one after the other, and a watch. It says how long the answers took, and
// which were none.
package innocent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
)

// Options of a User.
type Options struct {
	// URL is informerd's, Client trusts it and shows who asks.
	URL    string
	Client *http.Client
	// Cluster is a client of the API server, for what is compared and changed.
	Cluster dynamic.Interface
	// Namespace is where everything is. There are Maps ConfigMaps called as Map says,
	// with the label app=App, and one called Beat, which belongs to the user.
	Namespace string
	Maps      int
	Map       func(n int) string
	App, Beat string
	// Every is how long after an answer the next question is asked, at the least.
	Every time.Duration
}

// The questions, in the order in which they are shown.
const (
	Index = "index query"
	List  = "short list"
	Page  = "second page"
	Get   = "single object"
	Open  = "watch, until it begins"
	Event = "change, until a watch tells it"
)

// What is asked of the API server, which shares the machine: the same object, and the
// change that the watch tells.
const (
	ServerGet    = "(single object, API server)"
	ServerChange = "(change, API server)"
)

// Questions are those to informerd, References those to the API server.
var (
	Questions  = []string{Index, List, Page, Get, Open, Event}
	References = []string{ServerGet, ServerChange}
)

// User asks.
type User struct {
	Options
	book  atomic.Pointer[book]
	beats chan string // values that the watch was told
}

// New is a user who has not asked anything yet.
func New(opts Options) *User {
	u := &User{Options: opts, beats: make(chan string, 1024)}
	u.book.Store(newBook())
	return u
}

// Begin begins a new phase and returns what the one before was like.
func (u *User) Begin() Phase { return u.book.Swap(newBook()).phase() }

// Since are the times of this phase that were not told before.
func (u *User) Since() Times { return u.book.Load().since() }

// Answered reports whether each question was in this phase.
func (u *User) Answered() bool {
	times := u.book.Load().phase().Times
	return !slices.ContainsFunc(Questions, func(question string) bool { return len(times[question]) == 0 })
}

// Failed are the answers of this phase that were none, by question.
func (u *User) Failed() map[string]int { return u.book.Load().phase().Failed }

// Run asks until ctx ends.
func (u *User) Run(ctx context.Context) {
	var asking sync.WaitGroup
	for question, ask := range map[string]func(context.Context) error{
		Index: u.index, List: u.list, Get: u.get, Open: u.open, ServerGet: u.serverGet,
	} {
		asking.Go(func() {
			u.repeat(ctx, func() {
				u.time(ctx, question, func() error { return ask(ctx) })
			})
		})
	}
	asking.Go(func() { u.repeat(ctx, func() { u.pages(ctx) }) })
	asking.Go(func() { u.follow(ctx) })
	asking.Go(func() { u.repeat(ctx, func() { u.beat(ctx) }) })
	asking.Wait()
}

// repeat leaves a pause after each time.
func (u *User) repeat(ctx context.Context, do func()) {
	for ctx.Err() == nil {
		do()
		pause(ctx, u.Every)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// time notes how long an answer took, in the phase in which it was asked for.
func (u *User) time(ctx context.Context, question string, ask func() error) {
	b, began := u.book.Load(), time.Now()
	err := ask()
	took := time.Since(began)
	switch {
	case ctx.Err() != nil: // it is over, and nobody waits for the answer
	case err != nil:
		b.fail(question, fmt.Errorf("after %v: %w", took.Round(time.Millisecond), err))
	default:
		b.answered(question, took)
	}
}

func (u *User) index(ctx context.Context) error {
	return u.wantList(ctx, "/v1/resources/configmaps/indexes/label/"+url.PathEscape("app="+u.App)+"?fields=metadata.name", u.Maps, nil)
}

func (u *User) core() string { return "/api/v1/namespaces/" + u.Namespace + "/configmaps" }

func (u *User) selected() string { return u.core() + "?labelSelector=" + url.QueryEscape("app="+u.App) }

func (u *User) list(ctx context.Context) error { return u.wantList(ctx, u.selected(), u.Maps, nil) }

// pageHeld is how long a page is looked at before the next one is asked for.
const pageHeld = time.Second

func (u *User) pages(ctx context.Context) {
	half := u.Maps / 2
	path, next := fmt.Sprintf("%s&limit=%d", u.selected(), half), ""
	if err := u.wantList(ctx, path, half, &next); err != nil {
		u.time(ctx, Page, func() error { return fmt.Errorf("the first page: %w", err) })
		return
	}
	pause(ctx, pageHeld)
	u.time(ctx, Page, func() error {
		return u.wantList(ctx, path+"&continue="+url.QueryEscape(next), half, nil)
	})
}

// wantList asks for a list of so many objects; next, if it is not nil, gets its token.
func (u *User) wantList(ctx context.Context, path string, objects int, next *string) error {
	body, err := u.ask(ctx, path)
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ Continue string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("GET %s: %w: %.200s", path, err, body)
	}
	names := map[string]bool{}
	for _, item := range list.Items {
		names[item.Metadata.Name] = true
	}
	if len(names) != objects || len(list.Items) != objects || names[""] {
		return fmt.Errorf("GET %s: %d objects, want %d: %.200s", path, len(list.Items), objects, body)
	}
	if next != nil {
		if *next = list.Metadata.Continue; *next == "" {
			return fmt.Errorf("GET %s: no continue token: %.200s", path, body)
		}
	}
	return nil
}

func (u *User) get(ctx context.Context) error {
	name := u.Map(0)
	body, err := u.ask(ctx, u.core()+"/"+name)
	if err != nil {
		return err
	}
	var object struct {
		Metadata struct{ Name string }
		Data     map[string]string
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return fmt.Errorf("GET %s: %w: %.200s", name, err, body)
	}
	if object.Metadata.Name != name || object.Data["name"] != name {
		return fmt.Errorf("GET %s: not what it should be: %.200s", name, body)
	}
	return nil
}

// ask is a GET that has to be answered with 200.
func (u *User) ask(ctx context.Context, path string) ([]byte, error) {
	resp, err := u.do(ctx, path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return nil, fmt.Errorf("read the answer to GET %s: %w", path, err)
	}
	return body.Bytes(), nil
}

// do is ask for who reads the answer themselves.
func (u *User) do(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.URL+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := u.Client.Do(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 500))
	return nil, errors.Join(fmt.Errorf("GET %s: %s: %s", path, resp.Status, text), err)
}

// Ready reports why not everything can be asked for yet: what the questions are about, or
// an object.
func (u *User) Ready(ctx context.Context, object string) error {
	_, err := u.ask(ctx, object)
	return errors.Join(err, u.index(ctx), u.list(ctx), u.get(ctx), u.open(ctx))
}
