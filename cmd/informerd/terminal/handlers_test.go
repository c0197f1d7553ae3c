package terminal

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// serveHandlers answers as informerd does about a handler "shop" with two dead letters, and
// notes what it is told to do.
func serveHandlers(t *testing.T) (url string, done *[]string) {
	t.Helper()
	done = &[]string{}
	const shop = `{"name":"shop","resources":["pods"],"sink":"claim","state":"paused","reason":"by hand","pending":3,"oldestSeconds":61.2,"inFlight":1,"deadLetters":2,"perSecond":0.5`
	answers := map[string]string{
		"GET /v1/handlers":                             `{"kind":"HandlerList","items":[` + shop + `}]}`,
		"GET /v1/handlers/shop":                        shop + `,"lines":[{"cluster":"default","resource":"pods.v1","state":"following","known":7}]}`,
		"GET /v1/handlers/shop/deadletters":            `{"metadata":{"continue":"x"},"items":[{"cluster":"default","resource":"pods","namespace":"shop","name":"web-1","attempts":15,"error":"refused"}]}`,
		"GET /v1/handlers/shop/deadletters?continue=x": `{"metadata":{},"items":[{"cluster":"default","resource":"nodes","name":"n1","attempts":2,"error":"bad"}]}`,
		"POST /v1/handlers/shop/pause":                 `{"name":"shop","paused":true}`,
		"POST /v1/handlers/shop/resume":                `{"name":"shop","paused":false}`,
		"POST /v1/handlers/shop/redrive":               `{"redriven":2}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			*done = append(*done, r.URL.Path+" "+string(body))
		}
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.Method+" "+r.RequestURI]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"there is no handler \"none\""}`
		}
		fmt.Fprintln(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, done
}

func TestHandlers(t *testing.T) {
	url, done := serveHandlers(t)
	for _, test := range []struct {
		line, out, err string
		code           int
	}{
		{line: "handlers", out: "NAME   SINK    STATE    PENDING   OLDEST   IN FLIGHT   RATE    DEAD   REASON\nshop   claim   paused   3         1m1s     1           0.5/s   2      by hand\n"},
		{line: "handlers -o name", out: "shop\n"},
		{line: "handlers shop --no-headers", out: "shop   claim   paused   3   1m1s   1   0.5/s   2   by hand\n\ndefault   pods.v1   following   7   \n"},
		{line: "handlers dead shop", out: "CLUSTER   KEY              ATTEMPTS   ERROR\ndefault   pods/shop/web-1   15         refused\ndefault   nodes/-/n1        2          bad\n"},
		{line: "handlers dead shop -o name", out: "pods/shop/web-1\nnodes/-/n1\n"},
		{line: "handlers pause shop", out: "shop paused\n"},
		{line: "handlers resume shop", out: "shop resumed\n"},
		{line: "handlers redrive shop", out: "2 sent again\n"},
		{line: "handlers redrive shop --key nodes/-/n1", out: "2 sent again\n"},
		{line: "handlers redrive shop --key pods/shop/web", code: ExitUsage, err: `"pods/shop/web" is no dead letter of shop`},
		{line: "handlers none", code: ExitNo, err: `there is no handler "none"`},
		{line: "handlers pause none", code: ExitNo, err: `there is no handler "none"`},
		{line: "handlers -o yaml", code: ExitUsage, err: "none of table, json, name"},
	} {
		r := runCommand(t.Context(), append(strings.Fields(test.line), "--server", url)...)
		out := strings.Join(strings.Fields(r.out), " ")
		if r.code != test.code || out != strings.Join(strings.Fields(test.out), " ") || !strings.Contains(r.err, test.err) {
			t.Errorf("%s: exit code %d, %q, %q", test.line, r.code, r.out, r.err)
		}
	}
	want := []string{
		"/v1/handlers/shop/pause ", "/v1/handlers/shop/resume ", "/v1/handlers/shop/redrive ",
		`/v1/handlers/shop/redrive {"keys":[{"cluster":"default","resource":"nodes","name":"n1"}]}`, "/v1/handlers/none/pause ",
	}
	if !slices.Equal(*done, want) {
		t.Errorf("done %q, want %q", *done, want)
	}
}
