package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/informerd/informerd/test/e2e/harness"
	"github.com/informerd/informerd/test/postgres"
)

// service is one address for several replicas: a connection goes to the first that takes it.
type service struct {
	net.Listener
	backends []string
	conns    sync.WaitGroup
}

func startService(t *testing.T, replicas ...*harness.Informerd) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Listener: l}
	for _, r := range replicas {
		s.backends = append(s.backends, strings.TrimPrefix(r.URL, "http://"))
	}
	s.conns.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.conns.Wait()
	})
	return s
}

func (s *service) accept() {
	for {
		conn, err := s.Accept()
		if err != nil {
			return
		}
		s.conns.Go(func() { s.forward(conn) })
	}
}

func (s *service) forward(conn net.Conn) {
	defer conn.Close()
	for _, address := range s.backends {
		to, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		go func() {
			_, _ = io.Copy(to, conn)
			_ = to.Close()
		}()
		_, _ = io.Copy(conn, to)
		_ = to.Close()
		return
	}
}

func (s *service) URL() string { return "http://" + s.Addr().String() }

// leads reports whether a replica says that it leads.
func leads(i *harness.Informerd) (bool, error) {
	a, err := i.Get("/metrics")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(a.Body)) {
		if value, ok := strings.CutPrefix(line, "informerd_leads "); ok {
			return strings.TrimSpace(value) == "1", nil
		}
	}
	return false, errors.New("it does not say whether it leads")
}

// leaderOf waits until one of two replicas leads, and the other one knows it.
func leaderOf(t *testing.T, a, b *harness.Informerd) (leader, other *harness.Informerd) {
	t.Helper()
	harness.Eventually(t, time.Minute, "one replica to lead", func() error {
		first, err := leads(a)
		if err != nil {
			return err
		}
		second, err := leads(b)
		switch {
		case err != nil:
			return err
		case first == second:
			return fmt.Errorf("both say that they lead: %v", first)
		case first:
			leader, other = a, b
		default:
			leader, other = b, a
		}
		return nil
	})
	return leader, other
}

// waitFollowing waits until a replica has all that the leader has: what it knows from the
// snapshot at its start may be a part of that.
func waitFollowing(t *testing.T, leader, other *harness.Informerd) {
	t.Helper()
	harness.Eventually(t, syncTime, "the other replica to follow all resources", func() error {
		want, err := leader.States()
		if err != nil {
			return err
		}
		got, err := other.States()
		if err != nil || got["live"] < want["live"] {
			return fmt.Errorf("its resources are %v, the leader's %v: %v", got, want, err)
		}
		return nil
	})
	other.WaitLive(t, syncTime)
}

// asking asks a replica again and again, and counts what is no answer.
type asking struct {
	asked, failed atomic.Int64
	err           atomic.Value
	stop          func()
}

func startAsking(i *harness.Informerd) *asking {
	r := &asking{}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
			a, err := i.Get("/api/v1/configmaps?limit=5")
			if err == nil && a.Status == http.StatusTooManyRequests {
				continue // the machine has too much to do: a client asks again
			}
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("%d: %.300s", a.Status, a.Body)
			}
			r.asked.Add(1)
			if err != nil {
				r.failed.Add(1)
				r.err.Store(err)
			}
		}
	}()
	r.stop = sync.OnceFunc(func() {
		close(done)
		<-ended
	})
	return r
}

func (r *asking) check(t *testing.T) {
	t.Helper()
	r.stop()
	if n := r.failed.Load(); n > 0 || r.asked.Load() == 0 {
		t.Errorf("%d of %d questions were not answered: %v", n, r.asked.Load(), r.err.Load())
	}
}

// listCounter counts the lists of a client.
type listCounter struct {
	http.RoundTripper
	lists atomic.Int64
}

func (c *listCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
		c.lists.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// startInformer starts an informer of client-go at url, which holds ConfigMaps.
func startInformer(t *testing.T, url string) (cache.Store, *listCounter) {
	t.Helper()
	counter := &listCounter{}
	client, err := dynamic.NewForConfig(&rest.Config{Host: url, QPS: -1, WrapTransport: func(rt http.RoundTripper) http.RoundTripper {
		counter.RoundTripper = rt
		return counter
	}})
	if err != nil {
		t.Fatal(err)
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, configMaps, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	harness.Eventually(t, time.Minute, "the informer to be synced", func() error {
		if !informer.HasSynced() {
			return errors.New("it is not")
		}
		return nil
	})
	return informer.GetStore(), counter
}

// checkInformer waits until an informer holds what the API server does.
func checkInformer(t *testing.T, c *harness.Cluster, store cache.Store) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the informer to equal the API server", func() error {
		want, err := c.List(t.Context(), configMaps, "")
		if err != nil {
			return err
		}
		versions := map[string]string{}
		for _, o := range want.Items {
			versions[o.Namespace()+"/"+o.Name()] = o.ResourceVersion()
		}
		all := store.List()
		if len(all) != len(versions) {
			return fmt.Errorf("%d objects, want %d", len(all), len(versions))
		}
		for _, o := range all {
			m := o.(metav1.Object)
			if v := versions[m.GetNamespace()+"/"+m.GetName()]; v != m.GetResourceVersion() {
				return fmt.Errorf("%s/%s is at %s, want %s", m.GetNamespace(), m.GetName(), m.GetResourceVersion(), v)
			}
		}
		return nil
	})
}

// leaderKills is how often TestReplicas kills who leads.
func leaderKills() int {
	if n, err := strconv.Atoi(os.Getenv("INFORMERD_KILLS")); err == nil && n > 0 {
		return n
	}
	return 1
}

// TestReplicas: of two replicas one watches the cluster, and the other follows it. When the
// first is killed under churn the second answers on, and goes on where it was; so do the
// watches of clients. Nothing is listed from the API server again.
func TestReplicas(t *testing.T) {
	inTurn(t, &spareLane)
	t.Run("files", func(t *testing.T) { testReplicas(t, nil, leaderKills()) })
	t.Run("database", func(t *testing.T) { testReplicas(t, postgres.Start(t), leaderKills()) })
}

func testReplicas(t *testing.T, db *postgres.Server, kills int) {
	c := spareCluster(t)
	name := "replicas-files"
	opts := func() harness.Options {
		o := harness.Options{Kubeconfig: c.Kubeconfig("admin"), Lease: "default/" + name}
		if db != nil {
			o.Postgres = db.URL()
		} else {
			o.Snapshot = filepath.Join(t.TempDir(), "informerd.db")
		}
		return o
	}
	if db != nil {
		name = "replicas-database"
	}
	churn := newChurner(t, c, builtinKinds()[:1], name)
	churn.pause = 5 * time.Millisecond
	a := harness.StartInformerd(t, opts())
	a.WaitLive(t, syncTime)
	mark := c.AuditMark(t)
	b := harness.StartInformerd(t, opts())
	b.WaitLive(t, syncTime)
	s := startService(t, a, b)
	store, counter := startInformer(t, s.URL())
	lists := counter.lists.Load()
	follower := harness.Follow(t, a.At(s.URL()), "/v1/resources/configmaps/objects?namespace="+name)
	follower.Wait(t)

	var slowest time.Duration
	for range kills {
		leader, other := leaderOf(t, a, b)
		waitFollowing(t, leader, other)
		stop := churn.start(t.Context(), 3)
		waitChanges(t, churn, 50)
		waitSaved(t, leader)
		reads := startAsking(other)
		leader.Kill()
		began := time.Now()
		waitChanges(t, churn, 50)
		harness.Eventually(t, time.Minute, "the other replica to lead", func() error {
			if now, err := leads(other); err != nil || !now {
				return fmt.Errorf("it leads: %v, %v", now, err)
			}
			return nil
		})
		took := time.Since(began)
		slowest = max(slowest, took)
		other.WaitLive(t, syncTime)
		waitChanges(t, churn, 50)
		leader.Start()
		leader.WaitLive(t, syncTime)
		stop()
		reads.check(t)
		t.Logf("another replica led %.1f s after the one before was killed; %d questions were answered meanwhile", took.Seconds(), reads.asked.Load())
		for _, i := range []*harness.Informerd{a, b} {
			harness.CheckEqual(t, c, i, harness.Check{})
		}
		checkInformer(t, c, store)
	}
	checkLists(t, c, mark, kills+1, 0) // discovery begins anew at who leads
	churn.check(t)
	follower.CheckEqual(t, selected(t, c, configMaps, func(o harness.Object) bool { return o.Namespace() == name }))
	if n := counter.lists.Load(); n != lists {
		t.Errorf("the informer listed %d times again", n-lists)
	}
	t.Logf("%d kills; the slowest change of who leads took %.1f s", kills, slowest.Seconds())
}
