// Package e2e holds informerd to its promises: the real program, built with the
// race detector, against real control planes.
package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/informerd/informerd/test/attack/hostile"
	"github.com/informerd/informerd/test/e2e/harness"
)

// Four clusters are shared, each started by the first test that needs it. What
// tests leave in them other tests must not mind. All tests are parallel, and most of
// their time they wait; those of one cluster come one after the other, so that each has
// it to itself and may stop its components. How many run at once is not limited: one that
// waits for its turn must not keep another from having it.
//
// INFORMERD_E2E_DEMO and INFORMERD_E2E_SMALL name the directories of devclusters
// that run already, which saves their start while working on a test.
var (
	shared     string // directory of the clusters
	runningMu  sync.Mutex
	running    []*harness.Cluster // stopped at the end
	demoOnce   = sync.OnceValues(func() (*harness.Cluster, error) { return start("demo", harness.Demo) })
	smallOnce  = sync.OnceValues(func() (*harness.Cluster, error) { return start("small", harness.Small) })
	spareOnce  = sync.OnceValues(func() (*harness.Cluster, error) { return start("spare", harness.Small) })
	doubleOnce = sync.OnceValues(func() (*harness.Cluster, error) { return start("double", harness.Redundant) })
	attachable = map[string]string{"demo": "INFORMERD_E2E_DEMO", "small": "INFORMERD_E2E_SMALL"}
)

func TestMain(m *testing.M) {
	if os.Getenv(hostile.Env) != "" { // TestAttack runs this program once more
		os.Exit(hostile.Main())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "1000"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if shared, err = os.MkdirTemp("", "informerd-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	for _, c := range running {
		err = errors.Join(err, c.Stop())
	}
	if err = errors.Join(err, os.RemoveAll(shared)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func start(name string, args []string) (*harness.Cluster, error) {
	if dir := os.Getenv(attachable[name]); dir != "" {
		return harness.AttachCluster(dir)
	}
	began := time.Now()
	c, err := harness.StartCluster(filepath.Join(shared, name), args...)
	if err != nil {
		return nil, err
	}
	fmt.Printf("cluster %s started in %.1f s\n", name, time.Since(began).Seconds())
	runningMu.Lock()
	running = append(running, c)
	runningMu.Unlock()
	return c, nil
}

// lane lets in one test at a time, in the order in which they stand in the sources: the
// order in which each starts, waits at t.Parallel and has taken its place before that.
type lane struct {
	mu    sync.Mutex // guards the following
	last  <-chan struct{}
	owner string // the test that is in
}

// The lanes of the shared clusters, and of client-go's feature gates, which are those of
// the process.
var demoLane, smallLane, spareLane, doubleLane, featureLane lane

// inTurn makes a test parallel, and has it wait for its turn in lanes. It keeps them until
// it is over, with all it has registered after this to be cleaned up.
func inTurn(t *testing.T, lanes ...*lane) {
	t.Helper()
	turns := make([]<-chan struct{}, len(lanes))
	for n, l := range lanes {
		turns[n] = l.place(t)
	}
	t.Parallel()
	for n, l := range lanes {
		<-turns[n]
		l.setOwner(t.Name())
	}
}

// alone has a test run before all that are parallel, which are none of them in a lane yet:
// it takes more of the machine than would leave the others what they need.
func alone(t *testing.T, lanes ...*lane) {
	t.Helper()
	for _, l := range lanes {
		t.Cleanup(func() { l.setOwner("") })
		l.setOwner(t.Name())
	}
}

// place takes the next place in the lane; the turn is there when the result is closed.
func (l *lane) place(t *testing.T) (turn <-chan struct{}) {
	over := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	turn, l.last = l.last, over
	if turn == nil {
		first := make(chan struct{})
		close(first)
		turn = first
	}
	t.Cleanup(func() {
		<-turn // a test that is skipped does not let in the next one beside the one before
		l.setOwner("")
		close(over)
	})
	return turn
}

func (l *lane) setOwner(test string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner = test
}

// check fails a test that uses what others have to themselves.
func (l *lane) check(tb testing.TB, name string) {
	tb.Helper()
	test, _, _ := strings.Cut(tb.Name(), "/")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner != test {
		tb.Fatalf("%s is %q's: this test must begin with inTurn(t, &%s), or alone", name, l.owner, name)
	}
}

// demoCluster is the whole control plane with demo data and simulated nodes.
func demoCluster(tb testing.TB) *harness.Cluster {
	tb.Helper()
	demoLane.check(tb, "demoLane")
	c, err := demoOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// smallCluster is etcd and an API server.
func smallCluster(tb testing.TB) *harness.Cluster {
	tb.Helper()
	smallLane.check(tb, "smallLane")
	c, err := smallOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// spareCluster is another small cluster, for tests that wait for long.
func spareCluster(tb testing.TB) *harness.Cluster {
	tb.Helper()
	spareLane.check(tb, "spareLane")
	c, err := spareOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// doubleCluster is etcd and two API servers behind a balancer, with a proxy that
// lies if it is told to. Tests leave it whole.
func doubleCluster(tb testing.TB) *harness.Cluster {
	tb.Helper()
	doubleLane.check(tb, "doubleLane")
	c, err := doubleOnce()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

var names atomic.Int64

// fresh is a number for names that nothing else in the clusters has.
func fresh() int { return os.Getpid()*1000 + int(names.Add(1)) }

// syncTime is how long informerd may take to have everything live. It is no
// bar: machines that run tests may be slow.
const syncTime = 90 * time.Second

// discoveryStreams are the resources that discovery streams for itself, once
// after each start and each outage, to learn of new definitions at once.
var discoveryStreams = map[string]int{
	"customresourcedefinitions.apiextensions.k8s.io": 1,
	"apiservices.apiregistration.k8s.io":             1,
}
