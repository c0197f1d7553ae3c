package client

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// listed is what List says of an answer, with every value decoded.
type listed struct {
	Members map[string]any
	Items   []any
}

func readList(t *testing.T, in io.Reader) (*listed, error) {
	t.Helper()
	c, _ := newClient(t, "http://127.0.0.1:1")
	all := &listed{Members: map[string]any{}}
	err := c.List(t.Context(), &http.Response{
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(in),
	}, func(name string, v Value) (err error) {
		all.Members[name], err = decode(v)
		return err
	}, func(v Value) error {
		item, err := decode(v)
		all.Items = append(all.Items, item)
		return err
	})
	return all, err
}

// wantList is what encoding/json makes of an answer.
func wantList(t *testing.T, text string) *listed {
	t.Helper()
	want := &listed{Members: map[string]any{}}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&want.Members); err != nil {
		t.Fatal(err)
	}
	if items, ok := want.Members["items"].([]any); ok {
		want.Items = append(want.Items, items...)
		delete(want.Members, "items")
	}
	return want
}

// TestList: an answer is the same in whatever pieces it comes, and however large its items
// are.
func TestList(t *testing.T) {
	long := strings.Repeat(`0123456789\"abcdef`, firstWindow/8)
	for _, text := range []string{
		`{}`,
		` { "kind" : "List" , "items" : [ ] , "more" : 12 } `,
		`{"metadata":{"n":1},"items":[{"a":1},{"a":"é\u00e9"},null,17,"x",[1,2]],"unanswered":[{"b":2}]}`,
		`{"items":null}`,
		`{"items":[` + strings.Repeat(`{"name":"web","n":1234567890},`, 9000) + `{}]}`,
		`{"items":["` + long + `",1,"` + long + long + `"],"last":"` + long + `"}`,
	} {
		want := wantList(t, text)
		for name, in := range map[string]io.Reader{
			"whole": strings.NewReader(text), "halves": iotest.HalfReader(strings.NewReader(text)), "with its end": iotest.DataErrReader(strings.NewReader(text)),
			"bytes": iotest.OneByteReader(strings.NewReader(text)),
		} {
			if got, err := readList(t, in); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%.60s, %s: %d members, %d items, %v; want %d and %d", text, name, len(got.Members), len(got.Items), err, len(want.Members), len(want.Items))
			}
		}
	}
}

// TestListThatIsCut: of an answer that is cut off nothing is taken for all of it, nor is a part
// of a value for the whole.
func TestListThatIsCut(t *testing.T) {
	text := `{"kind":"List","metadata":{"n":3},"items":[{"a":1},{"a":23}],"n":45}`
	want := wantList(t, text)
	for cut := range len(text) {
		var in io.Reader = iotest.HalfReader(strings.NewReader(text[:cut]))
		if cut%2 == 0 {
			in = iotest.DataErrReader(strings.NewReader(text[:cut]))
		}
		got, err := readList(t, in)
		if err == nil {
			t.Errorf("%s: no error", text[:cut])
		}
		for i, item := range got.Items {
			if !reflect.DeepEqual(item, want.Items[i]) {
				t.Errorf("%s: item %d is %v", text[:cut], i, item)
			}
		}
		for name, value := range got.Members {
			if !reflect.DeepEqual(value, want.Members[name]) {
				t.Errorf("%s: %s is %v", text[:cut], name, value)
			}
		}
	}
	// What follows the last brace is read: a connection that breaks there did not end as it should.
	for _, end := range []string{text, text[:20]} {
		broken := io.MultiReader(strings.NewReader(end), iotest.ErrReader(io.ErrUnexpectedEOF))
		if _, err := readList(t, broken); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("broken off after %s: %v", end, err)
		}
	}
}

// TestListThatIsNone: what is no list is an error that says so.
func TestListThatIsNone(t *testing.T) {
	for _, text := range []string{`[]`, `1`, `{"items":[1 2]}`, `{"items":[1,]}`, `{"items":[,]}`, `{"a" 1}`, `{"a":1 "b":2}`, `{1:2}`, `{"a":}`, `{"a":1]`, `{"items":[}]`} {
		if got, err := readList(t, strings.NewReader(text)); err == nil {
			t.Errorf("%s was read: %+v", text, got)
		}
	}
}

// TestListOfAPage: what is no JSON by its own word is not read as an answer.
func TestListOfAPage(t *testing.T) {
	c, _ := newClient(t, "http://127.0.0.1:1")
	err := c.List(t.Context(), &http.Response{
		Header: http.Header{"Content-Type": {"text/html"}}, Body: io.NopCloser(strings.NewReader("<html>")), Request: httptest.NewRequest("GET", "/v1/query", nil),
	}, nil, nil)
	var foreign *ForeignError
	if !errors.As(err, &foreign) {
		t.Errorf("a page read as an answer: %v", err)
	}
}

// TestListRefused: an error of who is called ends the reading, and is returned as it is.
func TestListRefused(t *testing.T) {
	enough := errors.New("enough")
	c, _ := newClient(t, "http://127.0.0.1:1")
	for _, where := range []string{"kind", "items"} {
		items := 0
		err := c.List(t.Context(), &http.Response{
			Header: http.Header{"Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(`{"kind":"List","items":[1,2],"more":3}`)),
		}, func(name string, _ Value) error {
			if name == where {
				return enough
			}
			if name == "more" {
				t.Error("read on")
			}
			return nil
		}, func(Value) error {
			items++
			return enough
		})
		if err != enough || where == "items" && items != 1 || where == "kind" && items != 0 {
			t.Errorf("refused at %s: %v, after %d items", where, err, items)
		}
	}
}
