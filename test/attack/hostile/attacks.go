package hostile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"
)

const (
	pods       = "/v1/resources/pods/objects"
	podsOfKube = "/api/v1/pods"
)

// attacks are all there are.
var attacks = []attack{
	{"grow", "filters whose strings and lists grow without end", 8, (*worker).grow, []outcome{"400", "422"}},
	{"slow", "filters whose cost says little of their time", 8, (*worker).slow, []outcome{"200", "400", "422"}},
	{"quantity", "quantity('1e1000000000'), asked by clients that go away", 16, (*worker).quantity, []outcome{"200", "400", "422"}},
	{"navigate", "navigations and frames from another site", 4, (*worker).navigate, []outcome{"403"}},
	{"deep", "deeply nested objects, indented, as YAML", 8, (*worker).deep, []outcome{"200", "422"}},
	{"scrape", "thousands of /metrics", 64, (*worker).scrape, []outcome{"200"}},
	{"idle", "streams about everything, in which nothing happens", 400, (*worker).idle, []outcome{"200"}},
	{"deaf", "long lists that are never read", 100, (*worker).deafList, []outcome{"200"}},
	{"unread", "watches of what changes that are never read", 500, (*worker).unread, []outcome{"200"}},
	{"scan", "streams that are left once they have read all objects", 100, (*worker).scan, []outcome{"200"}},
	{"drip", "bodies that are passed on, a byte a second", 100, (*worker).drip, []outcome{"400", "403", "499"}},
	{"accept", "OpenAPI documents, accepted in countless ways", 8, (*worker).accept, []outcome{"200", "406"}},
	{"token", "lists of one object, each with a continue token", 16, (*worker).pages, []outcome{"200"}},
	{"control", "control characters as YAML, CSV and text", 8, (*worker).control, []outcome{"200"}},
	{"stranger", "tokens that nobody gave out", 16, (*worker).stranger, []outcome{"401"}},
}

// grow is what once took 7 GB for one request.
func (w *worker) grow(ctx context.Context) outcome {
	first := `['aaaaaaaaaaaaaaaa']`
	// Where there is no object there is nothing to refuse.
	return w.ask(ctx, filtered(oneOf("/v1/resources/"+w.Resource+"/objects", "/v1/query"), first+oneOf(
		strings.Repeat(`.map(a, a.replace('', a))`, 3+rand.IntN(3)),
		strings.Repeat(`.map(a, a.split('').join(a))`, 4),
		strings.Repeat(`.map(a, '%s%s%s%s%s%s%s%s'.format([a, a, a, a, a, a, a, a]))`, 9),
		strings.Repeat(`.map(a, a + a)`, 40),
	)+` == []`))
}

func (w *worker) slow(ctx context.Context) outcome {
	double := `[1]` + strings.Repeat(`.map(a, [a, a])`, 30)
	wide := "/v1/resources/" + w.Resource + "/objects"
	return w.ask(ctx, oneOf(
		filtered(pods, double+` == `+double),
		filtered(pods, double+`.flatten(40).size() == 1`),
		filtered(pods, `string(object).matches('(a?){1000}b')`),
		filtered(wide, `object.spec.keys.all(k, object.spec.keys.exists(j, j == 'last'))`),
		filtered(wide, `object.spec.keys.all(k, k.matches('(k?){1000}b'))`),
		filtered(wide, `object.spec.keys.map(k, k).distinct().size() == 1`),
	))
}

// quantity is asked by clients who wait for some milliseconds, on connections that stay: a
// handshake for each would be all that informerd had to do.
func (w *worker) quantity(ctx context.Context) outcome {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	connected := httptrace.WithClientTrace(asking, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		time.AfterFunc(time.Duration(1+rand.IntN(50))*time.Millisecond, cancel)
	}})
	return read(connected)(w.beginAs(connected, w.fickle, http.MethodGet, filtered(pods, oneOf(
		`quantity('1e1000000000').isGreaterThan(quantity('1'))`,
		`quantity('1E-1000000000').compareTo(quantity('1')) == 0`,
		`object.spec.containers.all(c, quantity('1e999999999').add(quantity('1')).isGreaterThan(quantity(c.image)))`,
	)), nil))
}

// navigate has no token: no page can have a browser send one, and who sends one is none.
func (w *worker) navigate(ctx context.Context) outcome {
	return w.ask(ctx, oneOf(filtered(pods, `['aaaaaaaaaaaaaaaa'].map(a, a.replace('', a)).map(a, a.replace('', a)) == []`), podsOfKube, "/metrics", "/app.js"),
		"Authorization", "Basic YTpi", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", oneOf("document", "iframe"))
}

func (w *worker) deep(ctx context.Context) outcome {
	list := "/v1/resources/" + w.Resource + "/objects"
	one := list + "/" + w.Namespace + "/" + w.Deep
	return w.ask(ctx, oneOf(list+"?pretty=true", one+"?pretty=true", list+"?output=yaml", w.Path+"?pretty=true", w.Path+"/"+w.Deep+"?pretty=true"))
}

func (w *worker) scrape(ctx context.Context) outcome { return w.ask(ctx, "/metrics") }

func (w *worker) idle(ctx context.Context) outcome {
	if w.number%2 == 0 {
		return w.stream(ctx, "/v1/query?resources=*&watch=true&namespace=none")
	}
	return w.stream(ctx, w.Path+"?watch=1&fieldSelector=metadata.name%3Dnone")
}

func (w *worker) deafList(ctx context.Context) outcome {
	return w.deaf(ctx, oneOf(podsOfKube, pods, "/v1/query"))
}

func (w *worker) unread(ctx context.Context) outcome {
	return w.deaf(ctx, "/api/v1/namespaces/"+w.Namespace+"/configmaps?watch=1")
}

// scan has all objects read for an answer that has none of them.
func (w *worker) scan(ctx context.Context) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := w.begin(ctx, http.MethodGet, filtered(oneOf(pods, "/v1/query"), `object.metadata.name.endsWith('.none')`)+"&watch=true", nil)
	if err != nil {
		return failed(ctx, err)
	}
	defer resp.Body.Close()
	first := make([]byte, 1)
	if _, err := resp.Body.Read(first); err != nil {
		return failed(ctx, err)
	}
	return statusOutcome(resp)
}

func (w *worker) drip(ctx context.Context) outcome {
	const bytes = 20_000
	w.tell(begun)
	resp, err := w.begin(ctx, http.MethodPost, "/api/v1/namespaces/"+w.Namespace+"/configmaps", &drip{ctx, bytes}, "Content-Type", "application/json")
	if err != nil {
		return failed(ctx, err)
	}
	resp.Body.Close()
	return statusOutcome(resp)
}

func (w *worker) accept(ctx context.Context) outcome {
	q := func() string { return fmt.Sprintf(";q=0.%03d", 1+rand.IntN(999)) }
	accept := oneOf(
		"application/json"+q()+", */*"+q(),
		"*/*"+q()+",application/json;a="+fmt.Sprint(rand.Int()),
		"application/com.github.proto-openapi.spec.v3@v1.0+protobuf"+q(),
		"application/x"+fmt.Sprint(rand.Int()),
	)
	return w.ask(ctx, oneOf("/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"), "Accept", accept, "Accept-Encoding", oneOf("gzip", "identity"))
}

func (w *worker) pages(ctx context.Context) outcome {
	return w.ask(ctx, oneOf(podsOfKube, "/api/v1/configmaps", pods, "/v1/query")+"?limit=1")
}

func (w *worker) control(ctx context.Context) outcome {
	return w.ask(ctx, "/v1/resources/configmaps/objects?namespace="+w.Namespace+"&labelSelector=attack%3Dcontrol&"+oneOf(
		"output=yaml", "output=csv&fields=metadata.name,data.text", "output=table&fields=metadata.name,data.text", "output=ndjson"))
}

func (w *worker) stranger(ctx context.Context) outcome {
	return w.ask(ctx, oneOf(podsOfKube, pods, "/metrics"), "Authorization", fmt.Sprintf("Bearer %x%x", rand.Uint64(), rand.Uint64()))
}
