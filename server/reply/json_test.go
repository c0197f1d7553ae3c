package reply

import "testing"

func TestJSON(t *testing.T) {
	value := map[string]any{"url": "/v1?a=<b>&c"}
	for pretty, want := range map[bool]string{
		false: `{"url":"/v1?a=<b>&c"}`,
		true:  "{\n  \"url\": \"/v1?a=<b>&c\"\n}",
	} {
		if got, err := JSON(value, pretty); err != nil || string(got) != want {
			t.Errorf("pretty %v: %s, %v; want %s", pretty, got, err, want)
		}
	}
	if _, err := JSON(func() {}, false); err == nil {
		t.Error("a function was encoded")
	}
}
