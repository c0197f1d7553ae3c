// Package hostile are users who mean ill: each attack does one thing that has hurt
// informerd once, all the time and several at once. They run in a process of their own,
// which is less important than others, so that what they take of a processor is not taken
// for what they take of informerd.
package hostile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// Env, if it is set, makes a program that calls Main hostile.
const Env = "INFORMERD_ATTACK"

// Orders say whom to attack, as whom and with what.
type Orders struct {
	// URL is informerd's, CA the certificate it shows, in PEM.
	URL string
	CA  []byte
	// Tokens are those of the users. Each worker has one.
	Tokens []string
	// Namespace is where the ConfigMaps are that attacks read: with control characters in
	// them, and one that changes all the time.
	Namespace string
	// Resource, as /v1 names it, and Path, as the Kubernetes API does, are those of objects
	// that are deep or wide.
	Resource, Path string
	// Deep and Wide are names of such objects.
	Deep, Wide string
	// Only are the names of the attacks to make; none: all.
	Only []string
	// Share of the workers that each attack has; 0: all.
	Share float64
	// Wait is how long a client waits for an answer, or for more of it, before it goes away.
	Wait time.Duration
}

// attack is one way to do harm.
type attack struct {
	name string
	does string
	// workers are how many do it at once.
	workers int
	// once does it once and says what came of it, "" for nothing worth telling.
	once func(w *worker, ctx context.Context) outcome
	// want is what may come of it.
	want []outcome
}

// outcome is the status of an answer, or a word for how it went without.
type outcome string

const (
	begun   outcome = "begun"   // it takes long
	left    outcome = "left"    // the client went away, since it was to or had waited for long
	cut     outcome = "cut"     // the server ended it
	refused outcome = "refused" // nobody listens
)

func statusOutcome(resp *http.Response) outcome {
	if resp.StatusCode == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
		return "503 without Retry-After"
	}
	return outcome(fmt.Sprint(resp.StatusCode))
}

// worker does one attack again and again as one user.
type worker struct {
	*Orders
	number int
	token  string
	tls    *tls.Config
	client *http.Client // HTTP/1.1, one connection for each request at a time
	fickle *http.Client // HTTP/2, whose connection outlasts requests that are given up
	tell   func(outcome)
}

// Names are those of all attacks.
func Names() []string {
	var names []string
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// Does is what an attack does.
func Does(name string) string {
	for _, a := range attacks {
		if a.name == name {
			return a.does
		}
	}
	return ""
}

// always is what a server may do whatever it is asked: begin to answer, cut off who attacks
// it, say that there is too much (429), that it cannot tell now (503) and when to come again,
// or that it took too long (504).
var always = []outcome{begun, left, cut, "429", "503", "504"}

// Expected reports whether an outcome of an attack is what a server may do.
func Expected(name, what string) bool {
	for _, a := range attacks {
		if a.name == name {
			return slices.Contains(a.want, outcome(what)) || slices.Contains(always, outcome(what))
		}
	}
	return false
}

// Main is the program: it reads Orders from its input and attacks until that ends. Once a
// second it writes a Tally of all so far. It returns what to exit with.
func Main() int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	input := json.NewDecoder(os.Stdin)
	var orders Orders
	if err := input.Decode(&orders); err != nil {
		fmt.Fprintln(os.Stderr, "attack: read orders:", err)
		return 2
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := run(ctx, &orders, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		return 2
	}
	return 0
}

const tellEvery = time.Second

func run(ctx context.Context, orders *Orders, out io.Writer) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(orders.CA) || len(orders.Tokens) == 0 {
		return errors.New("a certificate and tokens are needed")
	}
	if orders.Wait <= 0 {
		return errors.New("how long clients wait must be said")
	}
	trust := &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	t := newTally()
	var working sync.WaitGroup
	for _, a := range attacks {
		if len(orders.Only) > 0 && !slices.Contains(orders.Only, a.name) {
			continue
		}
		for n := range share(a.workers, orders.Share) {
			w := &worker{
				Orders: orders, number: n, token: orders.Tokens[n%len(orders.Tokens)], tls: trust,
				tell: func(o outcome) { t.count(a.name, o) },
			}
			working.Go(func() { w.repeat(ctx, a) })
		}
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for e := json.NewEncoder(out); ; {
		select {
		case <-done:
			return e.Encode(t.all())
		case <-tick.C:
			if err := e.Encode(t.all()); err != nil {
				return err
			}
		}
	}
}

// share is a part of some workers, at least one.
func share(workers int, part float64) int {
	if part == 0 {
		return workers
	}
	return max(1, int(float64(workers)*part))
}

func (w *worker) repeat(ctx context.Context, a attack) {
	first := &http.Transport{TLSClientConfig: w.tls, DisableCompression: true}
	defer first.CloseIdleConnections()
	second := &http.Transport{TLSClientConfig: w.tls.Clone(), DisableCompression: true, ForceAttemptHTTP2: true}
	defer second.CloseIdleConnections()
	w.client = &http.Client{Transport: first, Timeout: w.Wait}
	w.fickle = &http.Client{Transport: second}
	for ctx.Err() == nil {
		if o := a.once(w, ctx); o != "" && ctx.Err() == nil {
			w.tell(o)
		}
	}
}
