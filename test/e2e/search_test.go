package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/informerd/informerd/test/e2e/harness"
)

// TestSearch: what a question finds equals what a look at every object of the
// API server does.
func TestSearch(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "deployments.apps", "secrets", "clusterroles.rbac.authorization.k8s.io")

	for _, question := range []string{
		"frontend", "storefront", "kafka", "team-a regis", "label:team=payments", "label:app.kubernetes.io/part-of=shop",
		"image:registry.example.com/shop", "image:cart name:cart", "checkout-canary", "system:node", "annotation:argocd",
		"ns:payments ledger", "chec", "nothing-is-called-so", "tracking-id", `"kafka-0"`,
	} {
		t.Run(question, func(t *testing.T) {
			harness.Eventually(t, time.Minute, "the search to equal the API server's objects", func() error {
				truth, err := relationsOf(c, i)
				if err != nil {
					return err
				}
				var got struct {
					Items []struct{ ID, Name string }
					Total int
				}
				if err := i.Read("/v1/search?limit=1000&q="+url.QueryEscape(question), &got); err != nil {
					return err
				}
				var items []string
				for _, item := range got.Items {
					items = append(items, item.ID)
				}
				want := found(truth.objects, question)
				if none := strings.HasPrefix(question, "nothing"); none != (len(want) == 0) {
					return fmt.Errorf("%d objects are expected", len(want))
				}
				if exact := strings.ToLower(question); len(items) > 0 && slices.ContainsFunc(want, func(id string) bool { return strings.HasSuffix(id, "/"+exact) }) &&
					got.Items[0].Name != exact {
					return fmt.Errorf("%s is first, not what is called %s", items[0], exact)
				}
				if got.Total != len(want) {
					err = fmt.Errorf("total = %d, want %d", got.Total, len(want))
				}
				return errors.Join(err, same(items, want))
			})
		})
	}
}

// found looks at every object for all words of a question, kinds aside.
func found(objects map[string]harness.Object, question string) (ids []string) {
next:
	for id, o := range objects {
		texts := textsOf(o)
		for word := range strings.FieldsSeq(strings.ReplaceAll(strings.ToLower(question), `"`, "")) {
			field, rest, _ := strings.Cut(word, ":")
			if field == "ns" {
				if o.Namespace() != rest {
					continue next
				}
				continue
			}
			if _, known := texts[field]; !known {
				field, rest = "", word
			}
			re := regexp.MustCompile(`(^|[^a-z0-9])` + regexp.QuoteMeta(rest))
			hit := false
			for f, all := range texts {
				hit = hit || (field == "" || f == field) && slices.ContainsFunc(all, re.MatchString)
			}
			if !hit {
				continue next
			}
		}
		ids = append(ids, id)
	}
	return ids
}

func textsOf(o harness.Object) map[string][]string {
	texts := map[string][]string{"name": {o.Name()}, "namespace": {o.Namespace()}, "label": nil, "annotation": nil, "image": nil}
	for k, v := range o.Labels() {
		texts["label"] = append(texts["label"], k+"="+v)
	}
	for _, annotations := range at(harness.Kept(o), "metadata.annotations") {
		for k, v := range annotations.(map[string]any) {
			if len(v.(string)) <= 48 {
				k += "=" + v.(string)
			}
			texts["annotation"] = append(texts["annotation"], k)
		}
	}
	for _, spec := range []string{"spec.", "spec.template.spec.", "spec.jobTemplate.spec.template.spec."} {
		for _, containers := range []string{"containers", "initContainers"} {
			for _, image := range at(o, spec+containers+".*.image") {
				texts["image"] = append(texts["image"], image.(string))
			}
		}
	}
	for f := range texts {
		for n := range texts[f] {
			texts[f][n] = strings.ToLower(texts[f][n])
		}
	}
	return texts
}

// TestComplete: proposals are of this cluster.
func TestComplete(t *testing.T) {
	inTurn(t, &demoLane)
	c := demoCluster(t)
	i := harness.StartInformerd(t, harness.Options{Kubeconfig: c.Kubeconfig("admin")})
	i.WaitLive(t, syncTime, "pods", "deployments.apps")
	harness.Eventually(t, time.Minute, "the values to equal the API server's", func() error {
		truth, err := relationsOf(c, i)
		if err != nil {
			return err
		}
		for path, walked := range map[string]string{
			"spec.nodeName": "spec.nodeName", "metadata.labels.team": "metadata.labels.team", "metadata.namespace": "metadata.namespace",
			"spec.serviceAccountName": "spec.serviceAccountName", "spec.containers[*].image": "spec.containers.*.image",
		} {
			want := map[string]bool{}
			for id, o := range truth.objects {
				if !strings.HasPrefix(id, "pods/") {
					continue
				}
				for _, v := range at(o, walked) {
					want[v.(string)] = true
				}
			}
			var got struct{ Items []struct{ Value string } }
			if err := i.Read("/v1/complete?for=values&resource=pods&limit=1000&path="+url.QueryEscape(path), &got); err != nil {
				return err
			}
			for _, item := range got.Items {
				if !want[item.Value] {
					return fmt.Errorf("%s: %s is proposed and not there", path, item.Value)
				}
				delete(want, item.Value)
			}
			if len(want) > 0 {
				return fmt.Errorf("%s: %v are not proposed", path, want)
			}
		}
		return nil
	})
	for query, want := range map[string]string{
		"for=resources&prefix=deploy":                                   "deployments.apps",
		"for=resources&prefix=queue":                                    "queues.messaging.example.com",
		"for=paths&resource=pods&prefix=spec.containers[*].im":          "spec.containers[*].image",
		"for=paths&resource=queues.messaging.example.com&prefix=spec.":  "spec.consumers[*]",
		"for=paths&resource=pods&prefix=spec.containers[*].lifecycle":   "spec.containers[*].lifecycle.preStop.httpGet.path",
		"for=values&resource=deploy&path=metadata.labels&prefix=app.ku": "app.kubernetes.io/name",
	} {
		var got struct{ Items []struct{ Value string } }
		if err := i.Read("/v1/complete?"+query, &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Items) == 0 || want != "" && !slices.ContainsFunc(got.Items, func(item struct{ Value string }) bool { return item.Value == want }) {
			t.Errorf("%s proposes %v, want %q among it", query, got.Items, want)
		}
	}
}
