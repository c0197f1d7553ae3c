package gate

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/server/access/accesstest"
	"github.com/informerd/informerd/server/audit"
)

// TestWhoIsRecorded: who makes a request, and whom they want to be, whether they may or
// not; of several clusters as the first says that knows them.
func TestWhoIsRecorded(t *testing.T) {
	type line struct{ User, ImpersonatedUser *audit.User }
	w := newWorld(false, "east", "west")
	w.apis["east"].Token("of-root", accesstest.Named("root", "admins"))
	w.apis["east"].Token("of-jane", accesstest.Named("jane"))
	w.apis["west"].Token("of-bob", accesstest.Named("bob"))
	w.apis["east"].Allow(allow("root"))
	root := &audit.User{Username: "root", UID: "uid-root", Groups: []string{"admins", "system:authenticated"}}
	jane := &audit.User{Username: "jane", UID: "uid-jane", Groups: []string{"system:authenticated"}}
	asked := func(name string, groups ...string) *audit.User { // they are who the headers say
		return &audit.User{Username: name, Groups: append(groups, "system:authenticated")}
	}
	for name, test := range map[string]struct {
		token   string
		headers []string
		code    int
		want    line
	}{
		"a token":                  {token: "of-jane", want: line{User: jane}},
		"known in the second":      {token: "of-bob", want: line{User: &audit.User{Username: "bob", UID: "uid-bob", Groups: []string{"system:authenticated"}}}},
		"nobody":                   {token: "of-joe", code: 401},
		"impersonation":            {token: "of-root", headers: []string{"Impersonate-User", "jane"}, want: line{root, asked("jane")}},
		"refused impersonation":    {token: "of-jane", headers: []string{"Impersonate-User", "root", "Impersonate-Group", "admins"}, code: 403, want: line{jane, asked("root", "admins")}},
		"impersonation by nobody":  {token: "of-joe", headers: []string{"Impersonate-User", "jane"}, code: 401, want: line{ImpersonatedUser: asked("jane")}},
		"impersonation of a group": {token: "of-jane", headers: []string{"Impersonate-Group", "admins"}, code: 400, want: line{User: jane}},
	} {
		var out bytes.Buffer
		l, err := audit.Open(audit.Options{File: audit.Standard, Stdout: &out})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Run(ctx) }()
		r := request("/v1/query?resources=pods", test.token, test.headers...)
		record := l.Begin(r)
		_, err = w.Asker(r.WithContext(audit.With(r.Context(), record)))
		if codeOf(err) != test.code {
			t.Errorf("%s: %v", name, err)
		}
		record.End(200, 0, false)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		var got line
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
