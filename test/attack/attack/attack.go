// Package attack does to an informerd all at once what has hurt it once, and asks as an
// innocent user meanwhile: it has to live, and the user to be answered.
package attack

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/transport"

	"github.com/informerd/informerd/test/attack/hostile"
	"github.com/informerd/informerd/test/attack/innocent"
	"github.com/informerd/informerd/test/attack/rig"
	"github.com/informerd/informerd/test/e2e/harness"
)

// Options of an attack. Program, Cluster, Dir and Out are required.
type Options struct {
	// Program is the informerd under attack.
	Program string
	// Cluster is what it replicates.
	Cluster *harness.Cluster
	// Authorization is its mode; empty: rbac.
	Authorization string
	// Alone is how long the user asks before anybody attacks, Time how long while.
	Alone, Time time.Duration
	// Patience is how much longer either may last until each question was answered, and
	// each attack has come to something.
	Patience time.Duration
	// Only are the attacks to make; none: all.
	Only []string
	// Share of the workers that each attack has; 0: all.
	Share float64
	// Wait is how long the attackers wait for an answer; 0: two minutes. What takes long may
	// take minutes on a machine that has much else to do, and who waits for as long as
	// Patience has come to nothing.
	Wait time.Duration
	// Calm has informerd stop after the attack. It is quicker: what is not read, and what
	// does not come, is cut off ten seconds after SIGTERM.
	Calm bool
	// Nice is by how much the attackers' process is nicer than this one and informerd, so
	// that what they take of the processors is not taken for what they take of informerd; Idle
	// and more: they run when nothing else does.
	Nice int
	// Pprof is where informerd serves its profiles; empty: nowhere.
	Pprof string
	// Dir is where its files are.
	Dir string
	// Out is told what goes on.
	Out io.Writer
}

// Idle is nicer than any process can be.
const Idle = 20

const (
	// hostileUsers share the attacks.
	hostileUsers = 4
	// askEvery is how long the user thinks after an answer.
	askEvery = 50 * time.Millisecond
	// tellEvery is how often it is told what goes on.
	tellEvery = 10 * time.Second
	lookEvery = 250 * time.Millisecond
	// readyTimeout is how long informerd may take to have everything.
	readyTimeout = 3 * time.Minute
)

// run is one attack.
type run struct {
	Options
	began     time.Time
	informerd *rig.Informerd
	user      *innocent.User
	orders    *hostile.Orders
	attackers *attackers
	memory    rig.MemoryUse
	told      hostile.Tally
}

func (r *run) log(format string, args ...any) {
	fmt.Fprintf(r.Out, "%7.1f %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// Run makes an attack. An error says that it could not be made; what it did is in the
// Result. Nothing of it runs when Run returns, and the cluster is as it was.
func Run(ctx context.Context, opts Options) (_ *Result, err error) {
	r := &run{Options: opts, began: time.Now(), told: hostile.Tally{}}
	if r.Authorization == "" {
		r.Authorization = "rbac"
	}
	undo, err := rig.Prepare(ctx, r.Cluster)
	defer undo()
	if err != nil {
		return nil, fmt.Errorf("prepare the cluster: %w", err)
	}
	names := []string{"attack-innocent"}
	for n := range hostileUsers {
		names = append(names, fmt.Sprint("attack-hostile-", n))
	}
	tokens, dismiss, err := rig.Users(ctx, r.Cluster, names...)
	defer dismiss()
	if err != nil {
		return nil, fmt.Errorf("make users: %w", err)
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return nil, err
	}
	r.informerd, err = rig.StartInformerd(r.Program, r.Dir, r.Cluster.Kubeconfig("admin"), r.Authorization, r.Pprof)
	if err != nil {
		return nil, err
	}
	defer r.informerd.Kill()
	if err := r.introduce(ctx, tokens); err != nil {
		return nil, err
	}
	return r.measure(ctx)
}

// introduce waits until informerd has everything, and makes the users.
func (r *run) introduce(ctx context.Context, tokens []string) error {
	r.orders = &hostile.Orders{
		URL: r.informerd.URL, CA: r.informerd.CA, Tokens: tokens[1:], Namespace: rig.Namespace,
		Resource: rig.Resource, Path: rig.Path, Deep: rig.Deep, Wide: rig.Wide, Only: r.Only, Share: r.Share,
		Wait: cmp.Or(r.Wait, 2*time.Minute),
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.informerd.CA)
	direct := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, MaxIdleConnsPerHost: 16}
	client := &http.Client{Transport: transport.NewBearerAuthRoundTripper(tokens[0], direct)}
	r.user = innocent.New(innocent.Options{
		URL: r.informerd.URL, Client: client, Cluster: r.Cluster.Dynamic, Namespace: rig.Namespace,
		Maps: rig.Maps, Map: rig.Map, App: rig.App, Beat: rig.Beat, Every: askEvery,
	})
	err := harness.Poll(readyTimeout, func() error {
		if ctx.Err() != nil || r.informerd.Died() != nil {
			return nil
		}
		return r.user.Ready(ctx, rig.Path+"/"+rig.Wide)
	})
	return errors.Join(err, ctx.Err(), r.informerd.Died())
}

func (r *run) measure(ctx context.Context) (*Result, error) {
	asking, stopAsking := context.WithCancel(ctx)
	var user sync.WaitGroup
	user.Go(func() { r.user.Run(asking) })
	user.Go(func() { rig.MakeNoise(asking, r.Cluster) })
	defer user.Wait()
	defer stopAsking()

	r.log("the user asks alone for %v", r.Alone)
	r.watch(ctx, r.Alone/4) // the first answers are slower
	r.user.Begin()
	r.watch(ctx, r.Alone)
	r.await(ctx, r.user.Answered)
	result := &Result{Alone: r.user.Begin(), Calm: r.memory, Authorization: r.Authorization, Nice: r.Nice, Only: r.Only}
	r.log("attackers come")
	var err error
	if r.attackers, err = startAttackers(r.orders, r.Nice); err != nil {
		return nil, err
	}
	if err := r.attackers.wait(ctx); err != nil {
		return nil, errors.Join(err, r.attackers.stop())
	}
	began := time.Now()
	r.watch(ctx, r.Time)
	r.await(ctx, func() bool { return r.user.Answered() && len(missing(r.told, r.Only)) == 0 })
	result.Attacked, result.Memory, result.Took = r.user.Begin(), r.memory, time.Since(began)
	result.Died = r.informerd.Died()
	stopAsking()
	user.Wait()
	result.Attacks = r.told
	if r.Calm {
		err = r.attackers.stop()
	}
	if result.Died == nil {
		r.log("informerd stops")
		result.Stop, result.StopErr = r.informerd.Stop()
	}
	if !r.Calm {
		err = r.attackers.stop()
	}
	return result, errors.Join(err, ctx.Err())
}

// await goes on to watch until there is enough, or no more patience.
func (r *run) await(ctx context.Context, enough func() bool) {
	for over := time.Now().Add(r.Patience); !enough() && time.Now().Before(over) && ctx.Err() == nil && r.informerd.Died() == nil; {
		r.watch(ctx, time.Second)
	}
}

// missing are the attacks that nothing came of, of those that were to be made.
func missing(t hostile.Tally, only []string) (names []string) {
	for _, name := range hostile.Names() {
		if len(t[name]) == 0 && (len(only) == 0 || slices.Contains(only, name)) {
			names = append(names, name)
		}
	}
	return names
}

// watch looks at informerd for some time, and says what goes on.
func (r *run) watch(ctx context.Context, d time.Duration) {
	over, look, tell := time.After(d), time.NewTicker(lookEvery), time.NewTicker(tellEvery)
	defer look.Stop()
	defer tell.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-over:
			r.look()
			r.tell()
			return
		case <-look.C:
			if r.informerd.Died() != nil {
				return
			}
			r.look()
		case <-tell.C:
			r.tell()
		}
	}
}

func (r *run) look() {
	now, err := r.informerd.Memory()
	if err != nil {
		return // it has just died, which is found out
	}
	r.memory = now
}
