package rawjson

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
)

func readList(src []byte, seed uint64) (items []any, meta ListMeta, err error) {
	l := NewListReader(chop(src, seed), 0)
	for {
		raw, err := l.Next()
		if err != nil {
			return items, l.Meta(), err
		}
		var item any
		if err := kjsonUnmarshal(raw, &item); err != nil {
			return items, l.Meta(), err
		}
		items = append(items, item)
	}
}

func checkList(t *testing.T, src []byte, seed uint64) {
	t.Helper()
	items, meta, err := readList(src, seed)
	m, ok := refDecode(src)
	if !ok {
		if err == nil || err == io.EOF {
			t.Fatalf("%q: %d items and no error", src, len(items))
		}
		return
	}
	list, listed := m["items"]
	want, isArray := list.([]any)
	if !listed || !isArray && list != nil {
		if err == io.EOF {
			t.Fatalf("%q: taken for a list", src)
		}
		return
	}
	if err != io.EOF {
		if strings.Contains(err.Error(), "items occurs twice") || strings.Contains(err.Error(), "not an array") {
			return
		}
		t.Fatalf("%q: %v", src, err)
	}
	if len(items)+len(want) > 0 && !reflect.DeepEqual(items, want) {
		t.Fatalf("%q: items %v, want %v", src, items, want)
	}
	if wantMeta := refListMeta(m); !reflect.DeepEqual(meta, wantMeta) {
		t.Fatalf("%q: meta %+v, want %+v", src, meta, wantMeta)
	}
}

func refListMeta(m map[string]any) ListMeta {
	var l ListMeta
	l.APIVersion, _ = m["apiVersion"].(string)
	l.Kind, _ = m["kind"].(string)
	meta, _ := m["metadata"].(map[string]any)
	l.ResourceVersion, _ = meta["resourceVersion"].(string)
	l.Continue, _ = meta["continue"].(string)
	if n, ok := meta["remainingItemCount"].(int64); ok {
		l.RemainingItemCount = &n
	}
	return l
}

func kjsonUnmarshal(b []byte, v *any) error {
	// Through an object, so that the same decoder is used for all kinds.
	m, ok := refDecode([]byte(`{"v":` + string(b) + `}`))
	if !ok || !json.Valid(b) {
		return errors.New("invalid")
	}
	*v = m["v"]
	return nil
}

func equalJSON(a, b any) bool { return reflect.DeepEqual(a, b) }

var hardLists = []string{
	`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5","continue":"x","remainingItemCount":7},"items":[{"a":1},{"b":"]}"}]}`,
	`{"items":[{"a":1} , {} ],"metadata":{"resourceVersion":"5"},"kind":"L"} ` + "\n",
	`{"items":null}`, `{"items":[]}`, `{"items":[ ]}`, `{"items":{}}`, `{"items":5}`, `{"items":[1,"a",null]}`,
	`{}`, `{"kind":"Status","status":"Failure","code":410}`, `{"items":[],"items":[]}`, `[]`, ``, `null`,
	`{"items":[{}`, `{"items":[{}]`, `{"items":[{},`, `{"items":[{},]}`, `{"items":[,{}]}`, `{"items":[{}{}]}`, `{"items":[{}]}}`, `{"items":[{}]} x`, `{"items":[{}],}`,
	`{"items":[]"a":1}`, `{"items" []}`, `{"items":`, `{"items"`, `{"it`, `{`, `{,}`, `{"a":tru}`, `{"it\u0065ms":[{"a":1}]}`,
	`{"metadata":{"resourceVersion":"1"},"items":[],"metadata":{"continue":"2"}}`, `{"metadata":{"remainingItemCount":1.5,"resourceVersion":1},"items":[]}`,
}

func TestListHard(t *testing.T) {
	for _, s := range hardLists {
		for seed := range uint64(20) {
			checkList(t, []byte(s), seed)
		}
		// What is cut off must never look complete.
		for n := range len(s) {
			if _, _, err := readList([]byte(s[:n]), uint64(n)); err == nil || err == io.EOF && !json.Valid([]byte(s[:n])) {
				t.Errorf("%s: cut off at %d: %v", s, n, err)
			}
		}
	}
}

func TestListStatus(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Expired","code":410}`
	l := NewListReader(strings.NewReader(status+"\n"), 0)
	_, err := l.Next()
	var se *StatusError
	if !errors.As(err, &se) || string(se.Raw) != status {
		t.Errorf("Next() = %v, want the Status", err)
	}
	if _, err := NewListReader(strings.NewReader(`{"kind":"Pod"}`), 0).Next(); !errors.Is(err, ErrNotList) {
		t.Errorf("Next() = %v, want ErrNotList", err)
	}
	if _, err := NewListReader(strings.NewReader(`{"items":[{"a":"`), 0).Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("Next() = %v, want unexpected EOF", err)
	}
	if _, err := NewListReader(strings.NewReader(`{"items":[{"a":"`+strings.Repeat("x", 5000)+`"}]}`), 4999).Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Next() = %v, want ErrTooLarge", err)
	}
}

func FuzzList(f *testing.F) {
	for i, s := range hardLists {
		f.Add([]byte(s), uint64(i))
	}
	for seed := range uint64(20) {
		f.Add([]byte(`{"metadata":{},"items":[`+string(generate(seed))+`,`+string(generate(seed+1))+`]}`), seed)
	}
	f.Fuzz(func(t *testing.T, src []byte, seed uint64) {
		checkList(t, src, seed)
	})
}

func TestTableReader(t *testing.T) {
	const body = `{"kind":"Table","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name"}],"items":[1],"rows":[{"cells":["a"]},{"cells":["b"]}]}`
	for seed := range uint64(20) {
		l := NewTableReader(chop([]byte(body), seed), 0)
		var rows []string
		for {
			raw, err := l.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(l.Columns()) != `[{"name":"Name"}]` {
				t.Errorf("columns are %s when a row comes", l.Columns())
			}
			rows = append(rows, string(raw))
		}
		if got := strings.Join(rows, " "); got != `{"cells":["a"]} {"cells":["b"]}` || l.Meta().ResourceVersion != "7" {
			t.Errorf("rows %s, %+v", got, l.Meta())
		}
	}
	if _, err := NewTableReader(strings.NewReader(`{"items":[1]}`), 0).Next(); !errors.Is(err, ErrNotList) {
		t.Errorf("a list read as a table: %v", err)
	}
	if _, err := NewTableReader(strings.NewReader(body[:len(body)-3]), 0).Next(); err != nil {
		t.Errorf("the first row of half a table: %v", err)
	}
}
