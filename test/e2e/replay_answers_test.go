package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/test/websocket"
)

// readAs read answers as they are compared.
var readAs = map[string]func([]byte) (any, error){
	"body":      readBody,
	"names":     readNames,
	"table":     readTable,
	"allowed":   readAllowed,
	"rules":     readRules,
	"whoami":    readWhoami,
	"discovery": readDiscovery,
}

func readBody(text []byte) (body any, err error) { return body, json.Unmarshal(text, &body) }

type named struct{ Metadata metav1.ObjectMeta }

func (o named) key() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

func readNames(text []byte) (any, error) {
	var list struct {
		Kind  string
		Items []named
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	names := []string{list.Kind}
	for _, o := range list.Items {
		names = append(names, o.key())
	}
	return names, nil
}

// readTable has the columns of a table, and the objects of its rows.
func readTable(text []byte) (any, error) {
	var table struct {
		Kind              string
		ColumnDefinitions []metav1.TableColumnDefinition
		Rows              []struct {
			Cells  []any
			Object struct {
				named
				Kind string
			}
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, err
	}
	names := []string{table.Kind}
	for _, c := range table.ColumnDefinitions {
		names = append(names, c.Name+" "+c.Type)
	}
	for _, r := range table.Rows {
		names = append(names, fmt.Sprint(r.Object.Kind, " ", r.Object.key(), " ", len(r.Cells), " ", r.Cells[0]))
	}
	return names, nil
}

func readAllowed(text []byte) (any, error) {
	var review authorizationv1.SelfSubjectAccessReview
	err := json.Unmarshal(text, &review)
	return review.Status.Allowed, err
}

func readWhoami(text []byte) (any, error) {
	var review authenticationv1.SelfSubjectReview
	err := json.Unmarshal(text, &review)
	return review.Status.UserInfo, err
}

// readRules has what may be read by the rules of a review. They are not compared as they
// are: informerd leaves out what it does not do.
func readRules(text []byte) (any, error) {
	var review authorizationv1.SelfSubjectRulesReview
	if err := json.Unmarshal(text, &review); err != nil {
		return nil, err
	}
	var may []string
	for _, r := range rightsResources {
		for _, verb := range []string{"get", "list", "watch"} {
			if slices.ContainsFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
				return len(rule.ResourceNames) == 0 && has(rule.Verbs, verb) && has(rule.APIGroups, r.Group) && has(rule.Resources, r.Resource)
			}) {
				may = append(may, verb+" "+r.GroupResource().String())
			}
		}
	}
	for _, path := range []string{"/api", "/version", "/metrics"} {
		if slices.ContainsFunc(review.Status.NonResourceRules, func(rule authorizationv1.NonResourceRule) bool {
			return has(rule.Verbs, "get") && has(rule.NonResourceURLs, path)
		}) {
			may = append(may, "get "+path)
		}
	}
	return may, nil
}

func has(all []string, one string) bool {
	return slices.Contains(all, "*") || slices.Contains(all, one)
}

// readDiscovery has what can be read, and the reviews, in the version that a group
// prefers of each: informerd serves that, and nothing that writes. Of Events, which two
// groups have, it serves those of the core.
func readDiscovery(text []byte) (any, error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("it is a %s", list.Kind)
	}
	kinds := map[string]string{}
	for _, group := range list.Items {
		preferred := map[string]bool{}
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				review := strings.HasSuffix(r.Resource, "reviews") && r.Resource != "tokenreviews"
				readable := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
				if preferred[r.Resource] || !review && !readable || group.Name == "events.k8s.io" {
					continue
				}
				preferred[r.Resource] = true
				kinds[group.Name+"/"+version.Version+"/"+r.Resource] = fmt.Sprint(r.ResponseKind.Kind, r.Scope, r.SingularResource, r.ShortNames, r.Categories)
			}
		}
	}
	return kinds, nil
}

// initialNames are the objects that a stream begins with, up to the bookmark after them.
func initialNames(stream io.Reader) (any, error) {
	names := []string{}
	for events := json.NewDecoder(stream); ; {
		var e struct {
			Type   string
			Object named
		}
		if err := events.Decode(&e); err != nil {
			return nil, err
		}
		switch {
		case e.Type == "ADDED":
			names = append(names, e.Object.key())
		case e.Type == "BOOKMARK" && e.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true":
			slices.Sort(names)
			return names, nil
		case e.Type == "ERROR":
			return nil, fmt.Errorf("the stream ends with %+v", e)
		}
	}
}

// socket opens a WebSocket as Headlamp does, and has the objects that come over it until
// those have that a list has. Some wait for nothing to come: they would not notice more.
func (s side) socket(ctx context.Context, q replayed, path string) (answer, error) {
	config, err := rest.TLSConfigFor(s.config)
	if err != nil {
		return answer{}, err
	}
	header := http.Header{"Origin": {strings.Replace(q.Origin, "$SERVER", s.config.Host, 1)}}
	if q.Protocol != "" {
		header.Set("Sec-WebSocket-Protocol", q.Protocol)
	}
	if s.config.BearerToken != "" {
		header.Set("Authorization", "Bearer "+s.config.BearerToken)
	}
	c, head, err := websocket.Dial(ctx, strings.TrimSuffix(s.config.Host, "/")+path, config, header)
	if refused, ok := errors.AsType[*websocket.RefusedError](err); ok {
		var status metav1.Status
		err := json.Unmarshal([]byte(refused.Body), &status)
		return answer{Code: refused.Code, Refusal: status.Message}, err
	}
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	want, err := s.listed(ctx, path)
	if err != nil {
		return answer{}, err
	}
	got := []string{head.Header.Get("Sec-WebSocket-Protocol")}
	for len(got) <= len(want) {
		_, message, err := c.ReadMessage()
		var e struct {
			Type   string
			Object named
		}
		if err == nil {
			err = json.Unmarshal(message, &e)
		}
		if err != nil {
			return answer{}, fmt.Errorf("after %d of %d messages: %w", len(got)-1, len(want), err)
		}
		got = append(got, e.Type+" "+e.Object.key())
	}
	slices.Sort(got)
	return answer{Code: head.StatusCode, Is: got}, nil
}

// listed are the objects of a list with the selectors of a watch.
func (s side) listed(ctx context.Context, watch string) ([]string, error) {
	u, err := url.Parse(watch)
	if err != nil {
		return nil, err
	}
	query := u.Query()
	query.Del("watch")
	u.RawQuery = query.Encode()
	list, err := s.get(ctx, replayed{As: "names", Accept: "application/json"}, u.String(), "")
	if err != nil || list.Code != http.StatusOK {
		return nil, fmt.Errorf("%d %s %w", list.Code, list.Refusal, err)
	}
	return list.Is.([]string)[1:], nil
}
