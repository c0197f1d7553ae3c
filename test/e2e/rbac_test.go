package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
	"github.com/informerd/informerd/server/access/rbac"
	"github.com/informerd/informerd/server/access/rbac/rbactest"
	"github.com/informerd/informerd/test/e2e/harness"
)

// TestRBACVerdicts compares rights with the verdicts of Kubernetes' own authorizer, over
// random roles and bindings that come, change and go. It needs no cluster.
func TestRBACVerdicts(t *testing.T) {
	t.Parallel()
	const configurations, rounds, users = 200, 2, 5
	p := &protocol{t: t}
	for seed := range uint64(configurations) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := rbactest.NewCluster(t)
		grants := rbac.New(c.Followed, rbac.Options{})
		for range rounds {
			for range 10 + r.IntN(30) {
				c.Change(r)
			}
			p.line(c.Config)
			for range users {
				who := rbactest.RandomUser(r)
				rights, err := grants.Rights(t.Context(), &who)
				if err != nil {
					t.Fatal(err)
				}
				p.ask(r, seed, rights, who)
			}
		}
		grants.Close()
	}
	p.compare()
}

// protocol is what is asked of the judge, and what it should say.
type protocol struct {
	t     *testing.T
	lines bytes.Buffer
	asked int
	told  []told
}

// told is what rights say, which is to be so if one of the requests is allowed.
type told struct {
	what        string
	yes         bool
	first, last int
}

func (p *protocol) line(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.lines.Write(append(raw, '\n'))
}

func (p *protocol) tell(yes bool, what string, requests ...rbactest.Request) {
	for _, q := range requests {
		p.line(q)
	}
	p.told = append(p.told, told{what, yes, p.asked, p.asked + len(requests)})
	p.asked += len(requests)
}

// ask tells of some requests of a user, and of what is seen with some verbs.
func (p *protocol) ask(r *rand.Rand, seed uint64, rights *rbac.Rights, who rbactest.Request) {
	for n := range 40 {
		q := rbactest.RandomRequest(r, who)
		what := fmt.Sprintf("configuration %d, %s", seed, &q)
		if q.Path != "" {
			p.tell(rights.Path(q.Verb, q.Path), what, q)
			continue
		}
		p.tell(rights.Allowed(rbac.Attributes{
			Verb: q.Verb, Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
		}), what, q)
		if n%8 == 0 {
			p.askScope(seed, rights, q)
		}
	}
}

// askScope tells which objects are seen: those that a request may be about that names
// one, or, of the verbs that read many, all of its namespace.
func (p *protocol) askScope(seed uint64, rights *rbac.Rights, q rbactest.Request) {
	scope := rights.Scope(cache.Verb(q.Verb), schema.GroupResource{Group: q.Group, Resource: q.Resource}, q.Subresource)
	itself := q.Group == "" && q.Resource == "namespaces"
	for _, key := range []cache.Key{{Namespace: "shop", Name: "web"}, {Namespace: "a", Name: "shop"}, {Name: "shop"}, {Name: "db"}, {Namespace: "other", Name: "a"}} {
		if itself && key.Namespace != "" {
			continue // there are none
		}
		one, many := q, q
		one.Namespace, one.Name = key.Namespace, key.Name
		if itself {
			one.Namespace = key.Name
		}
		many.Namespace, many.Name = key.Namespace, ""
		requests := []rbactest.Request{one}
		if q.Verb == "list" || q.Verb == "watch" {
			requests = append(requests, many)
		}
		p.tell(scope.Sees(key), fmt.Sprintf("configuration %d, %s sees %s", seed, &q, key), requests...)
	}
}

func (p *protocol) compare() {
	verdicts := harness.Authorize(p.t, &p.lines)
	if len(verdicts) != p.asked {
		p.t.Fatalf("%d verdicts on %d requests", len(verdicts), p.asked)
	}
	yes := 0
	for _, told := range p.told {
		want := false
		for _, allowed := range verdicts[told.first:told.last] {
			want = want || allowed
		}
		if want {
			yes++
		}
		if told.yes != want {
			p.t.Errorf("%s: %v, and Kubernetes says %v", told.what, told.yes, want)
		}
	}
	p.t.Logf("%d verdicts on %d requests compared, %d of them yes", len(p.told), p.asked, yes)
	if yes < len(p.told)/50 || yes > len(p.told)*9/10 {
		p.t.Errorf("%d of %d are yes: nothing can be learnt from that", yes, len(p.told))
	}
}
