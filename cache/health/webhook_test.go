package health

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/informerd/informerd/cache"
)

const (
	validating = "validatingwebhookconfigurations.admissionregistration.k8s.io"
	mutating   = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
	endpoints  = "endpointslices.discovery.k8s.io"
)

// newWebhookWorld has what webhooks are made of.
func newWebhookWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, kind := range []string{"services v1 Service", endpoints + " v1 EndpointSlice", validating + " v1 ValidatingWebhookConfiguration", mutating + " v1 MutatingWebhookConfiguration"} {
		w.addKind(kind)
	}
	return w
}

// calls is a configuration of webhooks, each as "name namespace/service policy".
func calls(webhooks ...string) string {
	all := make([]string, len(webhooks))
	for i, line := range webhooks {
		f := strings.Fields(line)
		ns, name, _ := strings.Cut(f[1], "/")
		all[i] = fmt.Sprintf(`{"name":%q,"clientConfig":{"caBundle":"eA==","service":{"namespace":%q,"name":%q,"port":443}},"failurePolicy":%q}`, f[0], ns, name, f[2])
	}
	return `{"metadata":{},"webhooks":[` + strings.Join(all, ",") + `]}`
}

// endpointsOf are those of a Service, each ready, not ready, or silent of it.
func endpointsOf(service string, ready ...string) string {
	for i, r := range ready {
		ready[i] = `{"addresses":["10.0.0.1"],"conditions":{` + map[string]string{"yes": `"ready":true`, "no": `"ready":false`, "silent": ""}[r] + `}}`
	}
	return fmt.Sprintf(`{"metadata":{"labels":{"kubernetes.io/service-name":%q}},"addressType":"IPv4","endpoints":[%s]}`, service, strings.Join(ready, ","))
}

// told is the verdict on a configuration, by itself and in the list.
func (w *world) told(resource string) string {
	w.TB.Helper()
	one, err := w.index.AskObject(w.TB.Context(), ObjectQuery{Resource: schema.ParseGroupResource(resource), Key: cache.Key{Name: "x"}, Sight: cache.WholeSight()})
	if err != nil {
		w.TB.Fatal(err)
	}
	a := w.ask(func(q *Query) {
		q.Resources, q.Statuses = []schema.GroupResource{schema.ParseGroupResource(resource)}, Statuses
	})
	if len(a.Items) != 1 || a.Items[0].verdict() != one.Item.verdict() || a.Summary[one.Item.Status] != 1 {
		w.TB.Errorf("listed as %+v, alone %s", a, one.Item.verdict())
	}
	return one.Item.verdict()
}

// TestWebhooksWithoutService follows one Service that webhooks call through what can become
// of it.
func TestWebhooksWithoutService(t *testing.T) {
	w := newWebhookWorld(t)
	want := func(step, resource, verdict string) {
		t.Helper()
		if got := w.told(resource); got != verdict {
			t.Errorf("%s: %q, want %q", step, got, verdict)
		}
	}
	w.Put(validating, "x", calls("check.example.com policy/checks Fail"))
	w.Put(mutating, "x", calls("set.example.com policy/checks Ignore", "also.example.com policy/checks Fail", "not.example.com policy/other Fail"))
	w.Put("services", "policy/other", `{"spec":{"type":"ExternalName","externalName":"hooks.example.com"}}`)
	const gone = "bad ServiceNotFound: webhook check.example.com calls Service policy/checks, which is not there: what it should be asked about is refused"
	want("no Service", validating, gone)
	want("no Service", mutating, "bad ServiceNotFound: webhook set.example.com calls Service policy/checks, which is not there: what it should be asked about passes unchecked; likewise 1 more webhook")
	w.Put("services", "elsewhere/checks", `{"spec":{}}`)
	want("of another namespace", validating, gone)

	w.Put("services", "policy/checks", `{"spec":{"selector":{"app":"checks"}}}`)
	const none = "bad NoReadyEndpoints: webhook check.example.com calls Service policy/checks, which has no ready endpoints: what it should be asked about is refused"
	want("without slices", validating, none)
	w.Put(endpoints, "policy/a", endpointsOf("checks", "no", "no"))
	w.Put(endpoints, "policy/b", endpointsOf("others", "yes"))
	w.Put(endpoints, "elsewhere/c", endpointsOf("checks", "yes"))
	want("none is ready", validating, none)
	w.Put(endpoints, "policy/a", endpointsOf("checks", "no", "silent"))
	want("one may be", validating, "good")
	w.Put(endpoints, "policy/a", endpointsOf("checks", "no"))
	w.Put(endpoints, "policy/d", endpointsOf("checks", "yes"))
	want("one is", validating, "good")
	want("one is", mutating, "good")
	w.Put(validating, "x", `{"metadata":{},"webhooks":[{"name":"far.example.com","clientConfig":{"url":"https://hooks.example.com"}},{"name":"odd","clientConfig":7},8]}`)
	w.Delete("services", "policy/checks")
	want("an address", validating, "good")
}

// TestRevisionOfServices: who follows the health of everything asks again when a Service comes
// that a webhook waits for.
func TestRevisionOfServices(t *testing.T) {
	w := newWebhookWorld(t)
	w.Put(validating, "x", calls("check.example.com policy/checks Fail"))
	before, err := w.index.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(){
		func() { w.Put("services", "policy/checks", `{"spec":{}}`) },
		func() { w.Put(endpoints, "policy/a", endpointsOf("checks", "yes")) },
	} {
		change()
		after, err := w.index.Revision(t.Context())
		if err != nil || after == before {
			t.Errorf("revision %d, as before (%v)", after, err)
		}
		before = after
	}
}

// TestWebhooksOfWhatIsNotSeen: what one may not see is not missing.
func TestWebhooksOfWhatIsNotSeen(t *testing.T) {
	w := newWebhookWorld(t)
	w.Put(validating, "x", calls("check.example.com policy/checks Fail"))
	status := func(sight cache.Sight) Status {
		t.Helper()
		a, err := w.index.Ask(t.Context(), Query{Sight: sight})
		if err != nil {
			t.Fatal(err)
		}
		return map[bool]Status{true: Bad, false: Good}[len(a.Items) > 0]
	}
	without := func(resource string, scope cache.Scope) cache.Sight {
		scopes := map[schema.GroupResource]cache.Scope{}
		for _, r := range w.Resources {
			scopes[r.Spec().GVR.GroupResource()] = cache.WholeScope()
		}
		scopes[schema.ParseGroupResource(resource)] = scope
		return cache.NewSight(scopes)
	}
	for name, test := range map[string]struct {
		sight cache.Sight
		want  Status
	}{
		"all":                  {cache.WholeSight(), Bad},
		"no Services":          {without("services", cache.Scope{}), Good},
		"others of them":       {without("services", cache.NewScope([]string{"shop"}, nil)), Good},
		"those of the place":   {without("services", cache.NewScope([]string{"policy"}, nil)), Bad},
		"no configurations":    {without(validating, cache.Scope{}), Good},
		"no EndpointSlices":    {without(endpoints, cache.Scope{}), Bad},
		"this one by its name": {without("services", cache.NewScope(nil, map[string][]string{"policy": {"checks"}})), Good},
	} {
		if got := status(test.sight); got != test.want {
			t.Errorf("who sees %s is told %s, want %s", name, got, test.want)
		}
	}
	w.Put("services", "policy/checks", `{"spec":{}}`)
	if got := status(without(endpoints, cache.Scope{})); got != Good {
		t.Errorf("who sees no EndpointSlices is told %s of what has none", got)
	}
	if got := status(cache.WholeSight()); got != Bad {
		t.Errorf("without endpoints it is %s", got)
	}
	for _, r := range w.Resources {
		if r.Spec().GVR.Resource == "services" {
			r.State = cache.Syncing
		}
	}
	if got := status(cache.WholeSight()); got != Good {
		t.Errorf("while Services are not there yet it is %s", got)
	}
}
