package reply

import (
	"encoding/json"
	"testing"
)

func FuzzAppendValue(f *testing.F) {
	for _, text := range []string{"", "web-1", "<none>", "\"\\", "é\u2028\x01\x7f\xff", "3d4h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range []any{text, json.RawMessage(quoted), json.RawMessage("12"), json.RawMessage(`[ 1,  {"a" :2}]`), json.RawMessage(nil), nil, 7, true, []string{text}} {
			want, err := JSON(value, false)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := AppendValue([]byte("x"), value); err != nil || string(got) != "x"+string(want) {
				t.Errorf("%#v: %s, %v; want %s", value, got, err, want)
			}
		}
	})
}
