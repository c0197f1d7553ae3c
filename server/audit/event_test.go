package audit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestEventIsKubernetes: whoever reads the API server's audit log reads this one, too.
func TestEventIsKubernetes(t *testing.T) {
	before := time.Now().Truncate(time.Microsecond)
	line := recorded(t, request("/apis/apps/v1/namespaces/shop/deployments/web/scale?pretty=1", "User-Agent", "kubectl/v1.36", "Audit-ID", "abc-123"), func(r *Record) {
		r.By(User{Username: "jane", UID: "u1", Groups: []string{"dev", "system:authenticated"}})
		r.As(User{Username: "bob"})
		r.About("get", "east", Object{Resource: "deployments", Namespace: "shop", Name: "web", APIGroup: "apps", APIVersion: "v1", Subresource: "scale"})
		r.Returned(1)
		r.End(200, 17, false)
	})
	var got auditv1.Event
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "Event" || got.APIVersion != "audit.k8s.io/v1" || got.Level != auditv1.LevelMetadata ||
		got.AuditID != "abc-123" || got.Stage != auditv1.StageResponseComplete || got.Verb != "get" ||
		got.RequestURI != "/apis/apps/v1/namespaces/shop/deployments/web/scale?pretty=1" || got.UserAgent != "kubectl/v1.36" ||
		got.User.Username != "jane" || got.User.UID != "u1" || !slices.Equal(got.User.Groups, []string{"dev", "system:authenticated"}) ||
		got.ImpersonatedUser == nil || got.ImpersonatedUser.Username != "bob" || got.ResponseStatus.Code != 200 ||
		!slices.Equal(got.SourceIPs, []string{"192.0.2.1"}) {
		t.Errorf("read as %+v", got)
	}
	if diff := cmp.Diff(&auditv1.ObjectReference{
		Resource: "deployments", Namespace: "shop", Name: "web", APIGroup: "apps", APIVersion: "v1", Subresource: "scale",
	}, got.ObjectRef); diff != "" {
		t.Error(diff)
	}
	if began := got.RequestReceivedTimestamp.Time; began.Before(before) || got.StageTimestamp.Time.Before(began) || time.Since(got.StageTimestamp.Time) > time.Minute {
		t.Errorf("received at %v, told at %v", began, got.StageTimestamp)
	}
	own := decoded(t, line)[0]
	for name, want := range map[string]any{"cluster": "east", "objects": 1.0, "bytes": 17.0, "method": "GET"} {
		if own[name] != want {
			t.Errorf("%s is %v, want %v", name, own[name], want)
		}
	}
	if seconds, ok := own["durationSeconds"].(float64); !ok || seconds < 0 || seconds > 60 {
		t.Errorf("durationSeconds is %v", own["durationSeconds"])
	}
}

// TestLinesAreBounded: how long a line is, is not for clients to choose.
func TestLinesAreBounded(t *testing.T) {
	long := strings.Repeat("ü", 40_000)
	many := slices.Repeat([]string{long}, 1000)
	line := recorded(t, request("/x?filter="+strings.Repeat("a", 40_000), "User-Agent", long, "X-Forwarded-For", strings.Repeat("10.0.0.1,", 5000)), func(r *Record) {
		r.By(User{Username: long, UID: long, Groups: many})
		r.As(User{Username: long, UID: long, Groups: many})
		r.About("get", "", Object{Resource: long, Namespace: long, Name: long, APIGroup: long, APIVersion: long, Subresource: long})
		r.AboutMany("list", "", slices.Repeat([]string{"pods"}, 10_000))
		r.End(403, 0, false)
	})
	if len(line) > 300<<10 {
		t.Errorf("a line of %d bytes", len(line))
	}
	if got := decoded(t, line)[0]["userAgent"].(string); !strings.HasSuffix(got, "ü...TRUNCATED") {
		t.Errorf("the user agent ends with %q", got[len(got)-20:])
	}
	short := "kubectl/v1.36 (ü)"
	if got := bounded(short, len(short)); got != short {
		t.Errorf("%q became %q", short, got)
	}
}

// TestPrintable: whoever looks at the log in a terminal is not fooled, and whoever decodes
// it gets what was sent.
func TestPrintable(t *testing.T) {
	for sent, written := range map[string]string{
		"plain <&> text":  "plain <&> text",
		"a\nb\rc\x00\x1b": `a\nb\rc\u0000\u001b`,
		"del\x7f":         `del\u007f`,
		"\u009b31m":       `\u009b31m`,
		"a\u202eb\u2066c": `a\u202eb\u2066c`,
		"\u00a0\u200b":    `\u00a0\u200b`,
		"\U000e0001":      `\udb40\udc01`,
		"größe 😀":         "größe 😀",
		`"quoted\"`:       `\"quoted\\\"`,
	} {
		line := recorded(t, request("/", "User-Agent", sent), func(r *Record) { r.End(200, 0, false) })
		if !strings.Contains(line, `"userAgent":"`+written+`"`) {
			t.Errorf("%q is written as %s", sent, line)
		}
		if got := decoded(t, line)[0]["userAgent"]; got != sent {
			t.Errorf("%q is read as %q", sent, got)
		}
	}
	if line := recorded(t, request("/", "User-Agent", "bad\xff\xfe"), func(r *Record) { r.End(200, 0, false) }); decoded(t, line)[0]["userAgent"] != "bad\ufffd\ufffd" {
		t.Errorf("not UTF-8: %s", line)
	}
}

// TestStages: a stream is told of when it begins and when it ends, all else once.
func TestStages(t *testing.T) {
	stages := func(note func(*Record)) (all []string) {
		for _, e := range decoded(t, recorded(t, request("/"), note)) {
			all = append(all, e["stage"].(string))
		}
		return all
	}
	for name, test := range map[string]struct {
		note func(*Record)
		want []string
	}{
		"list":           {func(r *Record) { r.Begin(200); r.End(200, 1, false) }, []string{"ResponseComplete"}},
		"stream":         {func(r *Record) { r.Streams(); r.Begin(200); r.Returned(1); r.End(200, 1, false) }, []string{"ResponseStarted", "ResponseComplete"}},
		"connection":     {func(r *Record) { r.Streams(); r.Begin(101); r.End(101, 0, false) }, []string{"ResponseStarted", "ResponseComplete"}},
		"refused stream": {func(r *Record) { r.Streams(); r.Begin(410); r.End(410, 1, false) }, []string{"ResponseComplete"}},
		"ended twice":    {func(r *Record) { r.End(200, 1, false); r.End(500, 1, false) }, []string{"ResponseComplete"}},
	} {
		if got := stages(test.note); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestObjectsAreThoseSent: not those that were found for an answer that was never given.
func TestObjectsAreThoseSent(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		note   func(*Record)
		want   any
	}{
		"none are known":   {"GET", func(r *Record) { r.End(200, 5, false) }, nil},
		"none":             {"GET", func(r *Record) { r.Returned(0); r.End(200, 5, false) }, 0.0},
		"some":             {"GET", func(r *Record) { r.Returned(2); r.Returned(3); r.End(200, 5, false) }, 5.0},
		"not modified":     {"GET", func(r *Record) { r.Returned(2); r.End(304, 0, false) }, nil},
		"failed after all": {"GET", func(r *Record) { r.Returned(2); r.End(500, 5, false) }, nil},
		"HEAD":             {"HEAD", func(r *Record) { r.Returned(2); r.End(200, 0, false) }, nil},
	} {
		r := request("/")
		r.Method = test.method
		if got := decoded(t, recorded(t, r, test.note))[0]["objects"]; got != test.want {
			t.Errorf("%s: %v objects, want %v", name, got, test.want)
		}
	}
}

// TestNoRecord: nothing is noted where nothing is recorded.
func TestNoRecord(t *testing.T) {
	r := From(t.Context())
	r.By(User{})
	r.As(User{})
	r.About("get", "", Object{})
	r.AboutMany("list", "", nil)
	r.Returned(1)
	r.Streams()
	r.Begin(200)
	r.End(200, 0, false)
	if r.ID() != "" || From(With(t.Context(), nil)) != nil {
		t.Errorf("a record: %+v", r)
	}
	l, err := Open(Options{File: Standard, Omit: []string{"/readyz"}})
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]bool{"/readyz": false, "/readyz?verbose": false, "/readyz/verbose": true, "/": true} {
		r, _ := http.NewRequest(http.MethodGet, target, http.NoBody)
		if got := l.Begin(r) != nil; got != want {
			t.Errorf("%s is recorded: %v", target, got)
		}
	}
}
