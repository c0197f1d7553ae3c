package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/informerd/informerd/test/e2e/harness"
)

// replayed is an entry of testdata/replay.yaml, which says what its fields are.
type replayed struct {
	Name, As, With, Accept, Origin, Protocol string

	Get    []string
	Review []authorizationv1.ResourceAttributes
	Post   *struct{ Path, Body string }

	Differs *struct {
		Why     string
		Code    int
		Allowed *bool
	}
}

// TestReplay: what k9s and Headlamp ask when they start and in their first views is
// answered as by the API server, to each user.
func TestReplay(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{
		Kubeconfig: c.Kubeconfig("admin"), TLS: true, Rules: wholeCluster, Access: "authentication: {}\n",
	})
	admin := newAsker(t, c, i, "admin")
	harness.Eventually(t, syncTime, "ready", func() error {
		if code, body := admin.get(t, "/readyz?verbose"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	questions := readReplay(t, c)
	ask := func(user, with string, there, here *rest.Config) {
		t.Run(user, func(t *testing.T) {
			for _, q := range questions {
				if q.With == "" || q.With == with {
					t.Run(q.Name, func(t *testing.T) { replay(t, q, newSide(t, there), newSide(t, here)) })
				}
			}
		})
	}
	for _, user := range rightsUsers {
		there, here := configsOf(t, c, i, user)
		ask(user, "certificate", there, here)
	}
	there, here := configsOf(t, c, i, "admin")
	there, here = rest.AnonymousClientConfig(there), rest.AnonymousClientConfig(here)
	there.BearerToken = tokenOf(t, c, "replayed", "view")
	here.BearerToken = there.BearerToken
	ask("a service account", "token", there, here)
}

// readReplay reads testdata/replay.yaml for a cluster.
func readReplay(t *testing.T, c *harness.Cluster) (all []replayed) {
	t.Helper()
	text, err := os.ReadFile("testdata/replay.yaml")
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.Client.CoreV1().Pods(tenant).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		t.Fatalf("pods of %s: %v, %v", tenant, pods, err)
	}
	filled := strings.NewReplacer("$NS", tenant, "$POD", pods.Items[0].Name).Replace(string(text))
	if err := yaml.UnmarshalStrict([]byte(filled), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("only %d questions", len(all))
	}
	return all
}

// side is a user at the API server or at informerd.
type side struct {
	config *rest.Config
	http   *http.Client
}

func newSide(t *testing.T, config *rest.Config) side {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return side{config, client}
}

// ask asks one thing; a body makes it a POST.
func (s side) ask(ctx context.Context, q replayed, path, body string) (*http.Response, error) {
	method, content := http.MethodGet, io.Reader(nil)
	if body != "" {
		method, content = http.MethodPost, strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(s.config.Host, "/")+path, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", q.Accept)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return s.http.Do(r)
}

// answer is what is asked is answered with, as it is compared.
type answer struct {
	Code    int
	Refusal string // message of a Status
	Is      any
}

// get is ask, with the answer as q.As has it.
func (s side) get(ctx context.Context, q replayed, path, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if q.As == "socket" {
		return s.socket(ctx, q, path)
	}
	resp, err := s.ask(ctx, q, path, body)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	a := answer{Code: resp.StatusCode}
	switch {
	case q.As == "status":
		return a, nil
	case a.Code >= 300:
		var status metav1.Status
		err = json.NewDecoder(resp.Body).Decode(&status)
		a.Refusal = status.Message
	case q.As == "watch":
		a.Is, err = initialNames(resp.Body)
	default:
		var text []byte
		if text, err = io.ReadAll(resp.Body); err == nil {
			a.Is, err = readAs[q.As](text)
		}
	}
	return a, err
}

// replay asks both sides until they answer alike: the cluster changes now and then.
func replay(t *testing.T, q replayed, there, here side) {
	paths, bodies := q.Get, make([]string, len(q.Get))
	if q.Post != nil {
		paths, bodies = append(paths, q.Post.Path), append(bodies, q.Post.Body)
	}
	for _, r := range q.Review {
		body, err := json.Marshal(&authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"},
			Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &r},
		})
		if err != nil {
			t.Fatal(err)
		}
		paths, bodies = append(paths, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), append(bodies, string(body))
	}
	for n, path := range paths {
		err := harness.Poll(20*time.Second, func() error {
			want, err := there.get(t.Context(), q, path, bodies[n])
			got, herr := here.get(t.Context(), q, path, bodies[n])
			if err := errors.Join(err, herr); err != nil {
				return err
			}
			if q.Differs != nil {
				return differs(q, want, got)
			}
			if d := cmp.Diff(want, got); d != "" {
				return fmt.Errorf("-API server +informerd:\n%s", d)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s %s: %v", path, bodies[n], err)
		}
	}
}

// differs checks an answer that is another on purpose: a no, where there may be a yes, or
// a code that those are spared who may not ask.
func differs(q replayed, want, got answer) error {
	if q.Differs.Why == "" {
		return errors.New("it does not say why the answers differ")
	}
	if q.Differs.Allowed != nil {
		if got.Code != want.Code || got.Is != *q.Differs.Allowed {
			return fmt.Errorf("%d %v, want allowed %v; the API server: %d %v", got.Code, got.Is, *q.Differs.Allowed, want.Code, want.Is)
		}
		return nil
	}
	if want.Code == http.StatusForbidden && got.Code == want.Code {
		return nil
	}
	if got.Code != q.Differs.Code {
		return fmt.Errorf("%d, want %d; the API server: %d", got.Code, q.Differs.Code, want.Code)
	}
	return nil
}
