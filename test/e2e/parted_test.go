package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/test/e2e/harness"
)

// link is a way between two machines. While it is parted nothing comes through and nothing is
// closed, as when a switch is gone; what was on its way comes when it is whole again.
type link struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	open  chan struct{} // closed while it is whole
	ended bool
	conns map[net.Conn]bool
}

func startLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener: listener, target: target, open: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(l.open)
	l.running.Go(l.accept)
	t.Cleanup(func() {
		l.heal()
		_ = listener.Close()
		l.mu.Lock()
		l.ended = true
		for c := range l.conns {
			_ = c.Close()
		}
		l.mu.Unlock()
		l.running.Wait()
	})
	return l
}

func (l *link) address() string { return l.listener.Addr().String() }

func (l *link) part() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

func (l *link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// pass waits until the link is whole.
func (l *link) pass() {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	<-open
}

func (l *link) accept() {
	for {
		from, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.running.Go(func() {
			l.pass()
			to, err := net.Dial("tcp", l.target)
			if err != nil {
				_ = from.Close()
				return
			}
			if !l.keep(from, to) {
				return
			}
			l.running.Go(func() { l.carry(from, to) })
			l.carry(to, from)
		})
	}
}

// keep notes connections that are to be closed in the end.
func (l *link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.ended {
			_ = c.Close()
		}
		l.conns[c] = true
	}
	return !l.ended
}

func (l *link) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			l.pass()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				return
			}
			l.pass() // that it has ended comes through as late as anything else
			return
		}
	}
}

// kubeconfigThrough is a kubeconfig that reaches its cluster through a link.
func kubeconfigThrough(t *testing.T, kubeconfig string) (string, *link) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var l *link
	for _, c := range config.Clusters {
		u, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		l = startLink(t, u.Host)
		u.Host = l.address()
		c.Server = u.String()
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file, l
}

// linked is a replica that reaches the API server, and is reached, through links.
type linked struct {
	*harness.Informerd
	there, here *link // to the API server, and to itself
}

func startLinked(t *testing.T, c *harness.Cluster, lease string) *linked {
	t.Helper()
	kubeconfig, there := kubeconfigThrough(t, c.Kubeconfig("admin"))
	address := harness.FreeAddress(t)
	here := startLink(t, address)
	return &linked{harness.StartInformerd(t, harness.Options{
		Kubeconfig: kubeconfig, Snapshot: filepath.Join(t.TempDir(), "informerd.db"), Lease: lease,
		Address: address, ReplicaURL: "http://" + here.address(),
	}), there, here}
}

// waitStale waits until a replica says of what it answers that it is not proven current.
func (l *linked) waitStale(t *testing.T) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, "answers that say that they are old", func() error {
		a, err := l.Get("/v1/resources/configmaps/objects?limit=1")
		if err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("%v, %v", a, err)
		}
		if state := a.Header.Get(cache.StateHeader); !strings.EqualFold(state, string(cache.Stale)) {
			return fmt.Errorf("they are %s", state)
		}
		return nil
	})
}

// TestReplicasParted: of two replicas one cannot reach the API server any more, and then one
// cannot reach the other one; nothing is closed meanwhile, and what was on its way comes late.
// Both answer all the time, and say how old that is; in the end one leads, both are equal to the
// API server, and nothing was listed.
func TestReplicasParted(t *testing.T) {
	long(t)
	inTurn(t, &spareLane)
	c := spareCluster(t)
	churn := newChurner(t, c, builtinKinds()[:1], "parted")
	churn.pause = 20 * time.Millisecond
	a := startLinked(t, c, "default/parted")
	a.WaitLive(t, syncTime)
	mark := c.AuditMark(t)
	b := startLinked(t, c, "default/parted")
	b.WaitLive(t, syncTime)
	leader, other := leaderOf(t, a.Informerd, b.Informerd)
	if leader != a.Informerd {
		t.Fatal("the second one leads")
	}
	waitFollowing(t, leader, other)
	stop := churn.start(t.Context(), 2)
	waitChanges(t, churn, 50)

	a.there.part()
	harness.Eventually(t, time.Minute, "the second one to lead", func() error {
		if now, err := leads(b.Informerd); err != nil || !now {
			return fmt.Errorf("it leads: %v, %v", now, err)
		}
		return nil
	})
	b.WaitLive(t, syncTime)
	waitChanges(t, churn, 50)
	a.waitStale(t)
	a.there.heal()
	leader, other = leaderOf(t, a.Informerd, b.Informerd)
	if leader != b.Informerd {
		t.Error("who was away leads again")
	}
	waitFollowing(t, leader, other)

	b.here.part()
	waitChanges(t, churn, 50)
	a.waitStale(t)
	if now, err := leads(a.Informerd); err != nil || now {
		t.Errorf("it leads beside one that the API server hears of: %v", err)
	}
	b.here.heal()
	a.WaitLive(t, syncTime)
	stop()
	for _, i := range []*linked{a, b} {
		harness.CheckEqual(t, c, i.Informerd, harness.Check{})
	}
	checkLists(t, c, mark, 2, 0)
	churn.check(t)
}
