package config_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server/handlers"
)

// TestShippedHandlers: the handlers that the shipped file shows in comments are valid.
func TestShippedHandlers(t *testing.T) {
	data, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, ok := strings.Cut(string(data), "\n# handlers:\n")
	if !ok {
		t.Fatal("config.yaml shows no handlers")
	}
	text := "authentication: {}\nhandlers:\n" + regexp.MustCompile(`(?m)^#( |$)`).ReplaceAllString(shown, "")
	c, err := config.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, h := range c.Handlers {
		kinds = append(kinds, h.Name+":"+h.SinkKind)
	}
	if diff := cmp.Diff([]string{"shop:", "orders:webhook", "nodes:nats", "pods:kafka"}, kinds); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

func parseHandler(t *testing.T, text string) config.Handler {
	t.Helper()
	c, err := config.Parse("f", []byte("authentication: {}\nhandlers: ["+text+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return c.Handlers[0]
}

func TestHandlerDefaults(t *testing.T) {
	claimed := parseHandler(t, "{name: a, resources: [pods], as: informerd}")
	if claimed.From != handlers.FromNow || len(claimed.On) != 3 || claimed.MaxLease != 5*time.Minute || claimed.Concurrency != 0 ||
		claimed.Retry != (handlers.Retry{Base: time.Second, Max: 5 * time.Minute, Attempts: 15}) || claimed.SinkKind != "" {
		t.Errorf("claimed: %+v", claimed)
	}
	sent := parseHandler(t, "{name: a, resources: [pods], as: informerd, webhook: {url: https://a.example}}")
	if sent.Concurrency != 8 || sent.MaxLease != 0 || sent.SinkKind != "webhook" || sent.Webhook.Mode != "structured" || sent.Webhook.Timeout != 10*time.Second {
		t.Errorf("sent: %+v", sent)
	}
}

// TestHandlerFilter: an expression over old is a condition on changes, another one selects.
func TestHandlerFilter(t *testing.T) {
	selects := parseHandler(t, "{name: a, resources: [pods], as: informerd, filter: object.spec.replicas > 1}")
	if selects.Query.Filter == nil || selects.Change != nil {
		t.Errorf("over object: %v, %v", selects.Query.Filter, selects.Change)
	}
	changes := parseHandler(t, "{name: a, resources: [pods], as: informerd, filter: 'old == null || object.spec != old.spec'}")
	if changes.Query.Filter != nil || changes.Change == nil {
		t.Errorf("over old: %v, %v", changes.Query.Filter, changes.Change)
	}
	if changes.Digest == selects.Digest {
		t.Error("they are the same question")
	}
}

func TestHandlerMistakes(t *testing.T) {
	const begin = "handlers:\n- {name: a, resources: [pods], as: informerd"
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing": {"handlers:\n- {}", []string{
			`f:2: handlers[0]: needs name: write name: shop, by which it is asked for and its state is saved`,
			`f:2: handlers[0]: needs resources: write resources: [pods], whose changes it delivers`,
			`f:2: handlers[0]: needs as: write as: informerd, to see all that informerd holds, or as: {user: jane, groups: [ops]}, to see what they may`,
		}},
		"unknown key": {begin + ", webhoook: {}}", []string{`f:2: handlers[0].webhoook: unknown key, did you mean "webhook"?`}},
		"name":        {"handlers: [{name: A_b, resources: [pods], as: informerd}]", []string{`f:1: handlers[0].name: bad name "A_b": lower-case letters, digits and -, at most 63 of them`}},
		"name twice":  {begin + "}\n- {name: a, resources: [pods], as: informerd}", []string{`f:3: handlers[1]: the name "a" is taken by the handler on line 2`}},
		"resources": {"handlers: [{name: a, as: informerd, resources: [Pod, deployments.v1.apps, pods, pods]}]", []string{
			`f:1: handlers[0].resources[0]: bad pattern "Pod": resource names are lower-case plurals: pods, not Pod`,
			`f:1: handlers[0].resources[1]: "deployments.v1.apps" names a version: a handler takes the one that is watched, so write deployments.apps`,
			`f:1: handlers[0].resources[3]: "pods" is given twice`,
		}},
		"no resources": {"handlers: [{name: a, as: informerd, resources: []}]", []string{`f:1: handlers[0].resources: is empty: name the resources whose changes are delivered, such as [pods] or ["*.apps"]`}},
		"cluster":      {begin + ", clusters: [defualt]}", []string{`f:2: handlers[0].clusters[0]: there is no cluster "defualt": did you mean "default"?`}},
		"selectors": {begin + ", labelSelector: a in b, fieldSelector: a..b=c}", []string{
			`f:2: handlers[0].labelSelector: bad label selector "a in b": unable to parse requirement: found 'b' expected: '(': write one such as app=shop,tier in (web, db),!canary`,
			`f:2: handlers[0].fieldSelector: bad field selector "a..b=c": column 1: path "a..b": path "a..b", column 3: recursive descent (..) is not supported; name every field: write one such as spec.nodeName=n1,status.phase!=Failed`,
		}},
		"filter":       {begin + ", filter: object.spec + }", []string{`f:2: handlers[0].filter: column 14: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}`}},
		"filter type":  {begin + ", filter: 1 + 2}", []string{`f:2: handlers[0].filter: column 1: the expression is of type int; want true or false for each object`}},
		"filter clock": {begin + ", filter: 'age(object.metadata.creationTimestamp) > duration(\"1h\")'}", []string{`f:2: handlers[0].filter: depends on the time: what a handler selects may change only when an object does, so leave out now and age()`}},
		"change":       {begin + ", filter: 'old == null || old.x < now'}", []string{`f:2: handlers[0].filter: column 24: it depends on the time, as now, age(), health() and healthReason() do: a change is judged once, when it happens, and time alone changes no object; compare fields of object and old`}},
		"on":           {begin + ", on: [enter]}", []string{`f:2: handlers[0].on[0]: bad value "enter": did you mean "enters"?`}},
		"on nothing":   {begin + ", on: []}", []string{`f:2: handlers[0].on: is empty and nothing would be delivered: leave it out for all of enters, changes, leaves`}},
		"from":         {begin + ", from: start}", []string{`f:2: handlers[0].from: bad value "start": known are now, beginning`}},
		"fields":       {begin + ", fields: [spec..a]}", []string{`f:2: handlers[0].fields[0]: bad path "spec..a", column 6: recursive descent (..) is not supported; name every field`}},
		"retry": {begin + ", retry: {base: 1m, max: 1s, attempts: 0}}", []string{
			`f:2: handlers[0].retry.attempts: 0 is out of range: from 1 to 1000`,
		}},
		"retry order":   {begin + ", retry: {base: 1m, max: 1s}}", []string{`f:2: handlers[0].retry: max is 1s and base 1m: the first wait is base, the longest max`}},
		"as":            {"handlers: [{name: a, resources: [pods], as: jane}]", []string{`f:1: handlers[0].as: bad value "jane": known are informerd`}},
		"as nobody":     {"authentication: {}\nhandlers: [{name: a, resources: [pods], as: {groups: [a]}}]", []string{`f:2: handlers[0].as: needs user: write {user: jane, groups: [ops]}, or informerd instead of it`}},
		"as without it": {"handlers: [{name: a, resources: [pods], as: {user: jane}}]", []string{`f:1: handlers[0].as: what a user may see is known only with authentication: configure it, or write as: informerd`}},
		"two sinks":     {begin + ", webhook: {url: https://a}, nats: {servers: ['nats://a']}}", []string{`f:2: handlers[0].nats: a handler has one sink, and this one has webhook: write a handler for each`}},
		"keys of sinks": {begin + ", concurrency: 2, rate: 5}", []string{
			`f:2: handlers[0].concurrency: is for a handler with a sink, and this one has none of webhook, nats and kafka: what it has is claimed`,
			`f:2: handlers[0].rate: is for a handler with a sink, and this one has none of webhook, nats and kafka: what it has is claimed`,
		}},
		"keys of claims": {begin + ", maxLease: 1m, webhook: {url: https://a}}", []string{`f:2: handlers[0].maxLease: is for a handler without a sink, whose keys are claimed, and this one has webhook`}},
		"rate":           {begin + ", rate: fast, webhook: {url: https://a}}", []string{`f:2: handlers[0].rate: is "fast", needs a number from 0.001 to 100000`}},
		"concurrency":    {begin + ", concurrency: 257, webhook: {url: https://a}}", []string{`f:2: handlers[0].concurrency: 257 is out of range: from 1 to 256`}},
		"no snapshot":    {"snapshot: {path: ''}\n" + begin + "}", []string{`f:3: handlers: handlers need snapshot.path or snapshot.postgres: what was delivered is saved with the copy, and without it a restart would deliver everything again or lose what changed`}},
		"no list":        {"handlers: {name: a}", []string{`f:1: handlers: is a mapping, needs a list`}},
		"webhook": {begin + ", webhook: {mode: binry, timeout: 1ms, headerFiles: {Host: a, x y: b}, allowPrivate: ['a b'], tls: {certFile: a}}}", []string{
			`f:2: handlers[0].webhook: needs url, such as url: https://hooks.example.com/informerd`,
			`f:2: handlers[0].webhook.mode: bad value "binry": did you mean "binary"?`,
			`f:2: handlers[0].webhook.timeout: duration 1ms is out of range: from 100ms to 5m`,
			`f:2: handlers[0].webhook.headerFiles.Host: bad header "Host": a delivery has its own`,
			`f:2: handlers[0].webhook.headerFiles.x y: bad header "x y": letters, digits and -`,
			`f:2: handlers[0].webhook.allowPrivate[0]: bad value "a b": name a host, an address or a network, such as hooks.shop.svc, 10.0.0.7 or 10.0.0.0/8`,
			`f:2: handlers[0].webhook.tls: needs both certFile and keyFile, or none to show no certificate`,
		}},
		"webhook's password": {begin + ", webhook: {url: 'https://a:b@c/'}}", []string{`f:2: handlers[0].webhook.url: bad URL: it has a user and perhaps a password, which whoever reads this file could read: put them into a file and name it in headerFiles, as Authorization`}},
		"nats": {begin + ", nats: {servers: ['http://a', 'nats://u:p@a', 'nats://a'], subject: 'a.*', stream: 'a.b', mode: batch, tokenFile: a, userFile: b, tls: {}, allowAddresses: [a]}}", []string{
			`f:2: handlers[0].nats.passwordFile: is missing, and userFile is given: give both`,
			`f:2: handlers[0].nats.servers[0]: has the scheme "http": only nats and tls are spoken, write one such as tls://nats.example.com:4222`,
			`f:2: handlers[0].nats.servers[1]: has a user, a password or a token, which whoever reads this file could read: put them into files and name those in userFile and passwordFile, or in tokenFile`,
			`f:2: handlers[0].nats.subject: "a.*" is no subject that can be published to: tokens with dots between them, without spaces, * and >, and not of those that begin with $ or _, such as informerd.{handler}.{cluster}.{resource}.{namespace}.{name}`,
			`f:2: handlers[0].nats.stream: "a.b" is no name of a stream: no spaces, dots, *, > and slashes, such as CHANGES`,
			`f:2: handlers[0].nats.mode: bad value "batch": known are structured, binary`,
			`f:2: handlers[0].nats.userFile: is a second way to log in beside tokenFile: give one of credsFile, tokenFile, nkeyFile, and userFile with passwordFile`,
			`f:2: handlers[0].nats.tls: has no meaning for nats://: write tls:// in servers instead, or leave it out`,
			`f:2: handlers[0].nats.allowAddresses[0]: bad value "a": name an address or a network, such as 203.0.113.7 or 203.0.113.0/24`,
		}},
		"nats with TLS and without": {begin + ", nats: {servers: ['nats://a', 'tls://b']}}", []string{
			`f:2: handlers[0].nats.servers: of nats://a and tls://b one speaks TLS and the other does not: write tls:// for all, or nats:// for all`,
		}},
		"nats without servers": {begin + ", nats: {credsFile: ''}}", []string{
			`f:2: handlers[0].nats: needs servers, such as servers: ["tls://nats.example.com:4222"]`,
			`f:2: handlers[0].nats.credsFile: is empty`,
		}},
		"kafka": {begin + ", kafka: {brokers: [a, 'u:p@b:9092'], topic: 'a b', mechanism: scram, maxMessageBytes: 1, passwordFile: a, tls: {certFile: a}}}", []string{
			`f:2: handlers[0].kafka.userFile: is missing, and passwordFile is given: give both`,
			`f:2: handlers[0].kafka.brokers[0]: "a" is no host and port: write one such as kafka.example.com:9092`,
			`f:2: handlers[0].kafka.brokers[1]: has a user or a password, which whoever reads this file could read: put them into files and name those in userFile and passwordFile`,
			`f:2: handlers[0].kafka.topic: "a b" is no name of a topic: letters, digits, dots, - and _, at most 249 of them, such as shop-changes`,
			`f:2: handlers[0].kafka.mechanism: bad value "scram": known are plain, scram-sha-256, scram-sha-512`,
			`f:2: handlers[0].kafka.maxMessageBytes: 1 is out of range: from 1024 to 67108864`,
			`f:2: handlers[0].kafka.tls: needs both certFile and keyFile, or none to show no certificate`,
		}},
		"kafka in the clear": {begin + ", kafka: {brokers: ['a:1'], topic: a, mechanism: plain, userFile: a, passwordFile: b}}", []string{
			`f:2: handlers[0].kafka.mechanism: plain sends the password as it is, and there is no TLS: write tls: {}, or mechanism: scram-sha-512`,
		}},
		"kafka's nobody": {begin + ", kafka: {mechanism: plain}}", []string{
			`f:2: handlers[0].kafka: needs brokers, such as brokers: ["kafka.example.com:9092"]`,
			`f:2: handlers[0].kafka: needs topic, such as topic: shop-changes`,
			`f:2: handlers[0].kafka.mechanism: needs userFile and passwordFile: give all, or none`,
		}},
		"webhook's scheme":   {begin + ", webhook: {url: 'ftp://a'}}", []string{`f:2: handlers[0].webhook.url: bad URL with the scheme "ftp": write one such as https://hooks.example.com/informerd`}},
		"webhook's secret":   {begin + ", webhook: {url: 'https://a/s3cret#x'}}", []string{`f:2: handlers[0].webhook.url: bad URL: what follows # is not sent: leave it out`}},
		"webhook's nonsense": {begin + ", webhook: {url: 'https://a:s3cret/'}}", []string{`f:2: handlers[0].webhook.url: bad URL, which cannot be read as one: write one such as https://hooks.example.com/informerd`}},
		"tls without it":     {begin + ", webhook: {url: 'http://a', tls: {}}}", []string{`f:2: handlers[0].webhook.tls: has no meaning for plain http: write https:// in url`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("f", []byte(test.text))
			var got []string
			for _, e := range errorsOf(t, err) {
				if e.Column == 0 {
					t.Errorf("%v: without its column", e)
				}
				e.Column = 0 // TestMistakes has those
				got = append(got, e.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHandlerDigests: it is told what of a handler has changed: its question, its delivery,
// or neither.
func TestHandlerDigests(t *testing.T) {
	const base = "name: a, resources: [pods], as: informerd"
	before := parseHandler(t, "{"+base+", webhook: {url: https://a}}")
	for text, want := range map[string][2]bool{
		", webhook: {url: https://a}":                                            {false, false},
		", webhook: {url: https://a}, from: beginning":                           {false, false},
		", webhook: {url: https://a}, labelSelector: a=b":                        {true, false},
		", webhook: {url: https://a}, fieldSelector: a=b":                        {true, false},
		", webhook: {url: https://a}, filter: object.a":                          {true, false},
		", webhook: {url: https://a}, on: [leaves]":                              {true, false},
		", webhook: {url: https://a}, fields: [spec]":                            {true, false},
		", webhook: {url: https://a}, namespaces: [a]":                           {true, false},
		", webhook: {url: https://a}, clusters: [default]":                       {true, false},
		", webhook: {url: https://b}":                                            {false, true},
		", webhook: {url: https://a}, rate: 1":                                   {false, true},
		", webhook: {url: https://a}, retry: {attempts: 3}":                      {false, true},
		", webhook: {url: https://a, secretFiles: [x]}, concurrency: 3":          {false, true},
		", webhook: {url: https://a, headerFiles: {X: x}}, labelSelector: 'a=b'": {true, true},
	} {
		after := parseHandler(t, "{"+base+text+"}")
		if got := [2]bool{after.Digest != before.Digest, after.SinkDigest != before.SinkDigest}; got != want {
			t.Errorf("%s: question and delivery differ: %v, want %v", text, got, want)
		}
	}
	for _, sink := range [][2]string{
		{"nats: {servers: ['nats://a']}", "nats: {servers: ['nats://a'], stream: B}"},
		{"kafka: {brokers: ['a:1'], topic: a}", "kafka: {brokers: ['a:1'], topic: b}"},
	} {
		one, same, other := parseHandler(t, "{"+base+", "+sink[0]+"}"), parseHandler(t, "{"+base+", "+sink[0]+"}"), parseHandler(t, "{"+base+", "+sink[1]+"}")
		if one.SinkDigest != same.SinkDigest || one.SinkDigest == other.SinkDigest || one.SinkDigest == before.SinkDigest || one.Digest != before.Digest {
			t.Errorf("%s and %s are not told apart", sink[0], sink[1])
		}
	}
	user := parseHandler(t, "{name: a, resources: [pods], as: {user: jane}, webhook: {url: https://a}}")
	if user.Digest == before.Digest || user.SinkDigest != before.SinkDigest {
		t.Error("another identity is another question")
	}
}
