package discovery

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// twoServers stand behind a balancer of connections: requests that keep theirs all
// meet the same server, those that close theirs both by turns. CRDs and APIServices
// are in the etcd they share.
type twoServers struct {
	mu      sync.Mutex // guards all below
	servers [2]*fakeAPI
	kept    int // the server of those who keep their connection
	next    int
}

func (b *twoServers) keep(server int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = server
}

func (b *twoServers) replace(server int, by *fakeAPI) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[server] = by
}

func (b *twoServers) choose(r *http.Request) *fakeAPI {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.Close {
		return b.servers[b.kept]
	}
	b.next++
	return b.servers[b.next%2]
}

func (b *twoServers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.choose(r).ServeHTTP(w, r)
}

// newTwoServers has a server that serves lines, and an older one that lacks those
// that begin with "+".
func newTwoServers(serve func(...string) *fakeAPI, lines ...string) *twoServers {
	var all, old []string
	for _, line := range lines {
		all = append(all, strings.TrimPrefix(line, "+"))
		if !strings.HasPrefix(line, "+") {
			old = append(old, line)
		}
	}
	b := &twoServers{servers: [2]*fakeAPI{serve(all...), serve(old...)}}
	b.servers[1].version = "v1.34.3"
	b.servers[1].crds, b.servers[1].services = b.servers[0].crds, b.servers[0].services
	return b
}

// TestMixedServers: what only one of two API servers serves stays as it was while
// the other one answers, and the log tells it once.
func TestMixedServers(t *testing.T) {
	b := newTwoServers(func(lines ...string) *fakeAPI { return newFakeAPI(t, lines...) },
		"v1: pods", "batch/v1: jobs", "+storage.k8s.io/v1: classes")
	for _, gv := range []string{"v1", "batch/v1", "storage.k8s.io/v1"} {
		group, version, _ := strings.Cut(gv, "/")
		if version == "" {
			group, version = "", group
		}
		b.servers[0].services.setService(group, version, false)
	}
	front := httptest.NewServer(b)
	t.Cleanup(func() {
		b.servers[0].crds.cut()
		b.servers[0].services.cut()
		front.Close()
	})
	const all = "pods.v1 jobs.v1.batch classes.v1.storage.k8s.io"
	r := run(t, &fakeAPI{Server: front})
	r.reports(t, all)
	eventually(t, "it is told that servers differ", func() bool { return r.log.count("API servers that answer differ") == 1 })
	for _, server := range []int{1, 0, 1} {
		b.keep(server)
		// The older one, restarted, deletes the APIService that it does not know.
		if server == 1 {
			b.servers[0].services.delete("v1.storage.k8s.io")
		} else {
			b.servers[0].services.setService("storage.k8s.io", "v1", false)
		}
		r.looksMore(t, 5)
		r.reports(t, all)
	}
	// A custom resource is gone at once all the same.
	b.servers[0].says("v1: pods", "batch/v1: jobs", "storage.k8s.io/v1: classes", "g.io/v1: as")
	b.servers[1].says("v1: pods", "batch/v1: jobs", "g.io/v1: as")
	b.servers[0].crds.setCRD("g.io", "as", "uid-1", 1, "v1")
	r.reports(t, "pods.v1 jobs.v1.batch as.v1.g.io classes.v1.storage.k8s.io")
	b.servers[0].says("v1: pods", "batch/v1: jobs", "storage.k8s.io/v1: classes")
	b.servers[1].says("v1: pods", "batch/v1: jobs")
	b.servers[0].crds.delete("as.g.io")
	r.reports(t, all)
	for _, set := range r.reported() {
		if !strings.HasPrefix(set, "pods.v1 jobs.v1.batch") || !strings.HasSuffix(set, " classes.v1.storage.k8s.io") {
			t.Errorf("reported %q", set)
		}
	}
	if n := r.log.count("API servers that answer"); n != 1 {
		t.Errorf("logged %d times that servers differ, want once", n)
	}
}

// TestRollingUpgrade: servers of two versions for a while, of which one is at times
// away, and in the end of one. Nothing goes before then, and what is gone goes soon.
func TestRollingUpgrade(t *testing.T) {
	const all = "pods.v1 jobs.v1beta1.batch classes.v1.storage.k8s.io"
	b := newTwoServers(restricted, "v1: pods", "batch/v1beta1: jobs", "+storage.k8s.io/v1: classes")
	synctest.Test(t, func(t *testing.T) {
		d := simulated(t, b)
		is := func(want string) {
			t.Helper()
			synctest.Wait()
			if s, _ := d.Current(); strings.ReplaceAll(names(s), "~", "") != want {
				t.Errorf("Current() = %s, want %s", names(s), want)
			}
		}
		time.Sleep(time.Minute)
		is(all)
		for range 3 {
			b.keep(1)
			time.Sleep(5 * time.Minute)
			is(all)
			b.keep(0)
			time.Sleep(time.Minute)
			is(all)
		}
		// The newer one is being restarted.
		b.keep(1)
		newer, older := b.servers[0], b.servers[1]
		b.replace(0, older)
		time.Sleep(30 * time.Second)
		is(all)
		newer.says("v1: pods", "batch/v1: jobs", "storage.k8s.io/v1: classes")
		b.replace(0, newer)
		time.Sleep(5 * time.Minute)
		is(all)
		b.replace(1, newer)
		time.Sleep(mixedFor + confirmBlindAfter + 2*defaultPollInterval + 10*time.Second)
		is("pods.v1 jobs.v1.batch classes.v1.storage.k8s.io")
	})
}

// TestSurvey: servers of the same version that do not serve the same differ, too;
// one that is down does not.
func TestSurvey(t *testing.T) {
	b := newTwoServers(restricted, "v1: pods", "+batch/v1: jobs")
	b.servers[1].version = b.servers[0].version
	synctest.Test(t, func(t *testing.T) {
		d := simulated(t, b)
		time.Sleep(time.Minute)
		b.keep(1)
		time.Sleep(5 * time.Minute)
		if s, _ := d.Current(); strings.ReplaceAll(names(s), "~", "") != "pods.v1 jobs.v1.batch" {
			t.Errorf("Current() = %s while one server serves jobs", names(s))
		}
		b.servers[0].edit(func(f *fakeAPI) { f.status["/version"], f.status["/api"], f.status["/apis"] = 503, 503, 503 })
		time.Sleep(mixedFor + confirmBlindAfter + 2*defaultPollInterval + 10*time.Second)
		if s, _ := d.Current(); names(s) != "pods.v1" || d.Err() != nil {
			t.Errorf("Current() = %s, Err() = %v, want pods.v1 when nobody serves jobs", names(s), d.Err())
		}
	})
	if !slices.Contains(b.servers[0].requests, "GET /version 503") {
		t.Error("the server that is down was not asked")
	}
}
