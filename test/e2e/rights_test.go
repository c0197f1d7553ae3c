package e2e

import (
	"bytes"
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
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/test/e2e/harness"
)

// rightsUsers are the users of devcluster.
var rightsUsers = []string{"admin", "namespaced", "nosecrets", "nobody"}

// rightsResources are what they ask for.
var rightsResources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"},
	{Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "namespaces"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
}

// asker is a user at the API server, and the same at an informerd.
type asker struct {
	name        string
	informerd   *harness.Informerd
	token       string
	there, here dynamic.Interface
	http        *http.Client
}

func newAsker(t *testing.T, c *harness.Cluster, i *harness.Informerd, name string) *asker {
	t.Helper()
	there, here := configsOf(t, c, i, name)
	a := &asker{name: name, informerd: i, token: there.BearerToken}
	var err error
	if a.there, err = dynamic.NewForConfig(there); err != nil {
		t.Fatal(err)
	}
	if a.here, err = dynamic.NewForConfig(here); err != nil {
		t.Fatal(err)
	}
	if a.http, err = rest.HTTPClientFor(here); err != nil {
		t.Fatal(err)
	}
	return a
}

// configsOf are those by which a user asks the API server and an informerd.
func configsOf(t *testing.T, c *harness.Cluster, i *harness.Informerd, name string) (there, here *rest.Config) {
	t.Helper()
	there, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig(name))
	if err != nil {
		t.Fatal(err)
	}
	there.QPS = -1
	here = &rest.Config{Host: i.URL, BearerToken: there.BearerToken, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAFile: i.CAFile()}}
	if there.BearerToken == "" {
		here.TLSClientConfig.CertFile, here.TLSClientConfig.KeyFile = there.CertFile, there.KeyFile
		here.TLSClientConfig.CertData, here.TLSClientConfig.KeyData = there.CertData, there.KeyData
	}
	return there, here
}

// get asks informerd's own API.
func (a *asker) get(t *testing.T, path string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.informerd.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := a.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, body
}

// verdict is an answer to a list in short: the names, or the refusal.
func verdict(ctx context.Context, client dynamic.Interface, r schema.GroupVersionResource, namespace string) string {
	list, err := client.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return fmt.Sprint(status.Status().Code, " ", status.Status().Message)
	}
	if err != nil {
		return err.Error()
	}
	names := make([]string, len(list.Items))
	for n, o := range list.Items {
		names[n] = o.GetNamespace() + "/" + o.GetName()
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestRights: each user gets of informerd what the API server gives them and is refused
// what it refuses them, word for word; and what informerd alone answers is made of
// nothing else.
func TestRights(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	for _, mode := range []string{"rbac", "review"} {
		t.Run(mode, func(t *testing.T) {
			i := startGuarded(t, c, mode)
			namespaces := []string{"", tenant, "kube-system", "is-not-there"}
			for _, name := range rightsUsers {
				a := newAsker(t, c, i, name)
				for _, r := range rightsResources {
					for _, ns := range namespaces {
						if ns != "" && slices.Contains([]string{"nodes", "namespaces", "clusterroles"}, r.Resource) {
							continue
						}
						harness.Eventually(t, syncTime, "the same list", func() error {
							want, got := verdict(t.Context(), a.there, r, ns), verdict(t.Context(), a.here, r, ns)
							if got != want {
								return fmt.Errorf("%s, %s of %q: %.300s; the API server: %.300s", name, r.Resource, ns, got, want)
							}
							return nil
						})
					}
					checkVisible(t, a, r)
				}
			}
			checkStrangers(t, i)
		})
	}
}

// startGuarded starts an informerd that asks who asks, and waits until it has all.
func startGuarded(t *testing.T, c *harness.Cluster, mode string) *harness.Informerd {
	t.Helper()
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), TLS: true,
		Access: "authentication: {}\nauthorization: {mode: " + mode + "}\n",
	})
	admin := newAsker(t, c, i, "admin")
	harness.Eventually(t, syncTime, "ready", func() error {
		if code, body := admin.get(t, "/readyz?verbose"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	return i
}

// checkVisible compares what informerd's own API lists with what the API server lets
// the user list, namespace by namespace.
func checkVisible(t *testing.T, a *asker, r schema.GroupVersionResource) {
	t.Helper()
	resource := r.GroupResource().String()
	harness.Eventually(t, syncTime, "what may be seen", func() error {
		want := visible(t.Context(), a, r)
		code, body := a.get(t, "/v1/resources/"+resource+"/objects?view=metadata")
		if want == nil {
			if code != http.StatusForbidden {
				return fmt.Errorf("%s, %s: %d %.200s, and nothing of it may be seen", a.name, resource, code, body)
			}
			return nil
		}
		var list struct {
			Items []struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		if err := json.Unmarshal(body, &list); err != nil || code != http.StatusOK {
			return fmt.Errorf("%s, %s: %d %.200s", a.name, resource, code, body)
		}
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Metadata.Namespace+"/"+o.Metadata.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s, %s: %v, want %v", a.name, resource, got, want)
		}
		return nil
	})
}

// visible is nil where nothing may be seen.
func visible(ctx context.Context, a *asker, r schema.GroupVersionResource) []string {
	all := verdict(ctx, a.there, r, "")
	if !strings.HasPrefix(all, "403 ") {
		return append([]string{}, strings.Fields(all)...)
	}
	if mine := verdict(ctx, a.there, r, tenant); !strings.HasPrefix(mine, "403 ") && !slices.Contains([]string{"nodes", "namespaces", "clusterroles"}, r.Resource) {
		return append([]string{}, strings.Fields(mine)...)
	}
	if r.Resource == "namespaces" && a.name == "namespaced" { // who may get one of them may see it
		if _, err := a.there.Resource(r).Get(ctx, tenant, metav1.GetOptions{}); err == nil {
			return []string{"/" + tenant}
		}
	}
	return nil
}

// checkStrangers asks without a token, and with one that nobody gave out.
func checkStrangers(t *testing.T, i *harness.Informerd) {
	t.Helper()
	ca, err := os.ReadFile(i.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	for _, token := range []string{"", "Bearer is-no-token", "Basic YTpi"} {
		for _, path := range []string{"/api/v1/pods", "/apis", "/v1/resources", "/v1/search?q=a", "/metrics", "/v1/none", "/v1/query?resources=*&watch=true"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("X-Remote-Group", "system:masters")
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			resp, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusUnauthorized || !bytes.Contains(body, []byte(`"Unauthorized"`)) {
				t.Errorf("GET %s with %q: %d %.200s", path, token, resp.StatusCode, body)
			}
		}
	}
	client.CloseIdleConnections()
}

// TestRevoked: what somebody may not see any more they are not shown, and their watches
// end, soon: docs/security.md says how soon. What is measured here is only that it
// happens.
func TestRevoked(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	for _, mode := range []string{"rbac", "review"} {
		t.Run(mode, func(t *testing.T) {
			i := startGuarded(t, c, mode)
			a := newAsker(t, c, i, "nobody")
			configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			granted := grantFor(t, c, "nobody", "configmaps")
			harness.Eventually(t, syncTime, "granted", func() error {
				if got := verdict(t.Context(), a.here, configMaps, ""); strings.HasPrefix(got, "403") {
					return errors.New(got)
				}
				return nil
			})
			list, err := a.here.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w, err := a.here.Resource(configMaps).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			began := time.Now()
			granted()
			last := ""
			for e := range w.ResultChan() {
				if status, ok := e.Object.(*metav1.Status); ok {
					last = fmt.Sprint(status.Code, " ", status.Reason)
				}
			}
			t.Logf("the watch ended after %v", time.Since(began))
			if last != "410 Expired" {
				t.Errorf("the watch ended with %q, want 410", last)
			}
			harness.Eventually(t, syncTime, "hidden", func() error {
				if got := verdict(t.Context(), a.here, configMaps, ""); !strings.HasPrefix(got, "403") {
					return fmt.Errorf("still listed: %.100s", got)
				}
				if code, body := a.get(t, "/v1/resources/configmaps/objects"); code != http.StatusForbidden {
					return fmt.Errorf("%d %.100s", code, body)
				}
				return nil
			})
		})
	}
}
