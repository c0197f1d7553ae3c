package authorize

import (
	"bytes"
	"strings"
	"testing"
)

const config = `{"roles":[{"metadata":{"namespace":"a","name":"reader"},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods","pods/log"]}]}],` +
	`"clusterRoles":[{"metadata":{"name":"metrics"},"rules":[{"verbs":["get"],"nonResourceURLs":["/metrics/*"]}]}],` +
	`"roleBindings":[{"metadata":{"namespace":"a","name":"b"},"subjects":[{"kind":"ServiceAccount","name":"bot"}],"roleRef":{"kind":"Role","name":"reader"}},` +
	`{"metadata":{"namespace":"a","name":"c"},"subjects":[{"kind":"User","name":"jane"}],"roleRef":{"kind":"Role","name":"none"}}],` +
	`"clusterRoleBindings":[{"metadata":{"name":"m"},"subjects":[{"kind":"Group","name":"devs"}],"roleRef":{"kind":"ClusterRole","name":"metrics"}}]}`

func TestServe(t *testing.T) {
	const bot = `{"user":"system:serviceaccount:a:bot","verb":"get","resource":"pods",`
	for _, c := range []struct{ request, want string }{
		{bot + `"namespace":"a","name":"x"}`, `{"allowed":true}`},
		{bot + `"namespace":"a","name":"x","subresource":"log"}`, `{"allowed":true}`},
		{bot + `"namespace":"a","name":"x","subresource":"exec"}`, `{"allowed":false}`},
		{bot + `"namespace":"b","name":"x"}`, `{"allowed":false}`},
		{bot + `"namespace":"a","group":"apps"}`, `{"allowed":false}`},
		{`{"user":"jane","verb":"get","resource":"pods","namespace":"a"}`, `{"allowed":false}`},
		{`{"user":"jane","groups":["devs"],"verb":"get","path":"/metrics/x"}`, `{"allowed":true}`},
		{`{"user":"jane","groups":["devs"],"verb":"get","path":"/healthz"}`, `{"allowed":false}`},
		{`{"user":"jane","groups":["system:masters"],"verb":"delete","resource":"nodes","name":"n"}`, `{"allowed":true}`},
	} {
		var out bytes.Buffer
		if err := Serve(t.Context(), strings.NewReader(config+"\n"+c.request), &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(out.String()); got != c.want {
			t.Errorf("%s: %s, want %s", c.request, got, c.want)
		}
	}
}

// TestServeAgain: another line of roles and bindings replaces what was before.
func TestServeAgain(t *testing.T) {
	const request = `{"user":"system:serviceaccount:a:bot","verb":"get","resource":"pods","namespace":"a"}`
	var out bytes.Buffer
	in := strings.Join([]string{config, request, "{}", request, ""}, "\n")
	if err := Serve(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "{\"allowed\":true}\n{\"allowed\":false}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestServeRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"verb":"get"}`:         "before roles and bindings",
		"{}\n" + `{"verbs":"x"}`: "line 2",
		`{`:                      "line 1",
	} {
		err := Serve(t.Context(), strings.NewReader(in), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
