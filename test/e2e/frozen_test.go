package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

const (
	apiServer2 = "kube-apiserver-2"
	// leaseSlack is for a busy machine.
	leaseSlack = 10 * time.Second
	// ageSlack is how much of what was sent before a server froze may come after.
	ageSlack = 2 * time.Second
	// mostDials is how many requests a second a server may get that never answers
	// one, and firstDials how many each resource may have made before that is known.
	mostDials, firstDials = 3, 2
)

// heal undoes all that a test may have done to the cluster.
func heal(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, name := range []string{apiServer, apiServer2} {
		switch c.Component(t, name).State {
		case "paused":
			c.Ctl(t, "resume", name)
		case "stopped":
			c.Ctl(t, "start", name)
		}
	}
	c.Balancer(t, "normal")
	c.Proxy(t, harness.ProxyRules{Rules: []harness.ProxyRule{}})
}

// TestFrozenServer: a server that accepts connections and proves nothing makes no
// copy live for longer than a lease, whether it was stopped (direct) or resets what
// it accepts (reset). informerd says so, asks it rarely, and is live again soon after
// its return. Behind a balancer with a second one (both), nothing goes wrong. Nobody
// lists anything because of that.
func TestFrozenServer(t *testing.T) {
	long(t)
	inTurn(t, &doubleLane)
	c := doubleCluster(t)
	there := c.Through(t, "apiserver-2")
	createNamespace(t, there, "frozen")
	for n := range 10 {
		createConfigMap(t, there, "frozen", fmt.Sprintf("still-%d-%d", fresh(), n), nil, nil)
	}
	start := func(kubeconfig string) *harness.Informerd {
		return harness.StartInformerd(t, harness.Options{Kubeconfig: kubeconfig})
	}
	direct, reset, both := start(c.Kubeconfig("apiserver-1")), start(c.ProxiedKubeconfig()), start(c.Kubeconfig("admin"))
	all := []*harness.Informerd{direct, reset, both}
	var followers []*harness.Follower
	for _, i := range all {
		i.WaitLive(t, syncTime)
		f := harness.Follow(t, i, "/v1/resources/configmaps/objects")
		f.Wait(t)
		followers = append(followers, f)
	}
	// The API server may forget events of 75 seconds ago, but for the last hundred.
	witness := there.Witness(t, "frozen", time.Second)
	witness.Read(t, all...)
	steady, expired := watchSteady(t, both), countExpired(t, c, all...)

	t.Cleanup(func() { heal(t, c) })
	before := c.Proxy(t, harness.ProxyRules{Rules: []harness.ProxyRule{{Do: map[string]any{"reset": map[string]any{}}}}})
	c.Ctl(t, "pause", apiServer)
	frozen := time.Now()
	resources := 0
	for _, i := range []*harness.Informerd{direct, reset} {
		harness.Eventually(t, harness.MostLease+leaseSlack-time.Since(frozen), "no resource live", func() error {
			live := 0
			resources, live = checkAges(t, i, frozen)
			if live > 0 {
				return fmt.Errorf("%d of %d are live", live, resources)
			}
			return nil
		})
	}
	lasted := time.Since(frozen)
	for _, i := range []*harness.Informerd{direct, reset} {
		harness.Eventually(t, syncTime, "a readyz that is not ready and names the server unreachable", func() error {
			return readyzSays(t, i, http.StatusServiceUnavailable, "unreachable", "proven")
		})
		if a := i.MustGet(t, "/readyz?stale=ok"); a.Status != http.StatusOK {
			t.Errorf("readyz?stale=ok is %d: %.300s", a.Status, a.Body)
		}
	}
	asked := c.ProxyState(t).Requests - before.Requests
	t.Logf("not live after %.0f s, unreachable after %.0f s, %d requests to the server that resets", lasted.Seconds(), time.Since(frozen).Seconds(), asked)
	if most := mostDials*int(time.Since(frozen).Seconds()) + firstDials*resources; asked > most {
		t.Errorf("%d requests to a server that answers none, want at most %d", asked, most)
	}

	heal(t, c)
	healed := time.Now()
	for _, i := range all {
		i.WaitLive(t, syncTime)
		t.Logf("live again %.1f s after the return", time.Since(healed).Seconds())
	}
	steady.stop(t)
	witness.Stop(t)
	for n, i := range all {
		harness.CheckEqual(t, there, i, harness.Check{})
		followers[n].CheckEqual(t, selected(t, there, configMaps, nil))
		followers[n].CheckUndisturbed(t)
		checkStill(t, followers[n])
	}
	expired.check(t)
}

// checkAges fails the test for a resource that claims to be newer than the server
// froze, and counts those that are live.
func checkAges(t *testing.T, i *harness.Informerd, frozen time.Time) (resources, live int) {
	t.Helper()
	least := time.Since(frozen) - ageSlack
	all, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range all {
		switch r.State {
		case "unwatched":
			continue
		case "live":
			live++
		case "stale":
		default:
			t.Errorf("%s is %s: %s", name, r.State, r.Reason)
		}
		resources++
		if r.Age == nil || *r.Age < least.Seconds() {
			t.Errorf("%s is %s, of age %v, when the server has been frozen for %v", name, r.State, r.Age, least+ageSlack)
		}
	}
	return resources, live
}

// checkStill fails the test for a change of an object that nobody touched.
func checkStill(t *testing.T, f *harness.Follower) {
	t.Helper()
	for _, change := range f.Changes() {
		if strings.Contains(change.Key, "/still-") {
			t.Errorf("an object that nobody touched: %s", change)
		}
	}
}

// steadiness looks at all resources of an informerd, over and over: none may go,
// come, or have a state in which it cannot be read.
type steadiness struct {
	quit, done chan struct{}
	faults     []string
	switches   map[string]int // changes of state, by resource
}

func watchSteady(t *testing.T, i *harness.Informerd) *steadiness {
	t.Helper()
	s := &steadiness{quit: make(chan struct{}), done: make(chan struct{}), switches: map[string]int{}}
	first, err := i.Resources()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		before := first
		for {
			select {
			case <-s.quit:
				return
			case <-time.After(100 * time.Millisecond):
			}
			now, err := i.Resources()
			if err != nil {
				s.fault(err.Error())
				continue
			}
			s.compare(before, now)
			before = now
		}
	}()
	t.Cleanup(func() { s.end() })
	return s
}

func (s *steadiness) compare(before, now map[string]harness.Resource) {
	if a, b := slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(now)); !slices.Equal(a, b) {
		s.fault(fmt.Sprintf("resources were %v and are %v", a, b))
	}
	for name, r := range now {
		if r.State != before[name].State {
			s.switches[name]++
		}
		if !slices.Contains([]string{"live", "stale", "unwatched"}, r.State) {
			s.fault(fmt.Sprintf("%s is %s: %s", name, r.State, r.Reason))
		}
	}
}

func (s *steadiness) fault(text string) {
	if len(s.faults) < 20 && !slices.Contains(s.faults, text) {
		s.faults = append(s.faults, text)
	}
}

func (s *steadiness) end() {
	select {
	case <-s.done:
	default:
		close(s.quit)
		<-s.done
	}
}

// stop ends it and fails the test for what was wrong. It returns how often the state
// of any one resource changed.
func (s *steadiness) stop(t *testing.T) (most int) {
	t.Helper()
	s.end()
	for _, fault := range s.faults {
		t.Error(fault)
	}
	for _, n := range s.switches {
		most = max(most, n)
	}
	t.Logf("states of %d resources changed, of one %d times", len(s.switches), most)
	return most
}

// TestTwoServers: of two API servers behind a balancer, one is killed, and started
// again, while objects change. Resources stay, none flaps, no object goes that is
// there, and what is listed is listed because a server said 410.
func TestTwoServers(t *testing.T) {
	inTurn(t, &doubleLane)
	c := doubleCluster(t)
	there := c.Through(t, "apiserver-1")
	t.Cleanup(func() { heal(t, c) })
	churn := newChurner(t, there, builtinKinds(), "two-a", "two-b")
	churn.pause = 20 * time.Millisecond
	for n := range 10 {
		createConfigMap(t, there, "two-a", fmt.Sprintf("still-%d-%d", fresh(), n), nil, nil)
	}
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime)
	f := harness.Follow(t, i, "/v1/resources/configmaps/objects")
	f.Wait(t)
	witness := there.Witness(t, "two-a", 20*time.Millisecond)
	witness.Read(t, i)
	stop := churn.start(t.Context(), 3)
	waitChanges(t, churn, 60)
	steady, expired := watchSteady(t, i), countExpired(t, c, i)

	c.Ctl(t, "kill", apiServer2)
	waitChanges(t, churn, 60)
	c.Ctl(t, "start", apiServer2)
	waitChanges(t, churn, 60)
	stop()
	churn.check(t)
	i.WaitLive(t, syncTime)
	// The state follows a watch that breaks, and the 410 after it.
	if most := steady.stop(t); most > 6 {
		t.Errorf("the state of a resource changed %d times", most)
	}
	witness.Stop(t)
	harness.CheckEqual(t, there, i, harness.Check{})
	f.CheckEqual(t, selected(t, there, configMaps, nil))
	f.CheckUndisturbed(t)
	checkStill(t, f)
	expired.check(t)
}

// demands are the 410 that informerds were answered from some moment on.
type demands struct {
	cluster    *harness.Cluster
	mark       harness.Mark
	informerds []*harness.Informerd
	before     map[string]uint64
}

func countExpired(t *testing.T, c *harness.Cluster, informerds ...*harness.Informerd) *demands {
	t.Helper()
	d := &demands{cluster: c, mark: c.AuditMark(t), informerds: informerds}
	d.before = d.count(t)
	return d
}

func (d *demands) count(t *testing.T) map[string]uint64 {
	t.Helper()
	counts := map[string]uint64{}
	for _, i := range d.informerds {
		all, err := i.Resources()
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range all {
			counts[name] += r.Counts.Expired
		}
	}
	return counts
}

// check fails the test for each list that no 410 demanded. It returns how many there
// were in all, but for those of discovery.
func (d *demands) check(t *testing.T) (listed int) {
	t.Helper()
	after := d.count(t)
	for resource, lists := range harness.Lists(d.cluster.Audit(t, d.mark, harness.Agent)) {
		lists = slices.DeleteFunc(lists, func(r harness.Request) bool { return r.Code != http.StatusOK })
		expired, own := int(after[resource]-d.before[resource]), len(d.informerds)*discoveryStreams[resource]
		listed += max(0, len(lists)-own)
		if len(lists) > expired+own {
			t.Errorf("%s was listed %d times, and a server said %d times that it expired: %v", resource, len(lists), expired, lists)
		}
	}
	t.Logf("%d lists, each after a 410", listed)
	return listed
}
