package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "pods", 4},
		{"pods", "pods", 0},
		{"pod", "pods", 1},
		{"podz", "pods", 1},
		{"deploymnets", "deployments", 2},
		{"kitten", "sitting", 3},
		{"ab", "ba", 2},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"labelSelector", "limit", "labels", "Sort"}
	for word, want := range map[string]string{
		"labelSelektor": "labelSelector",
		"LIMIT":         "limit",
		"sort":          "Sort",
		"label":         "labels",
		"l":             "",
		"":              "",
		"namespace":     "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("Nearest() = %q of no words", got)
	}
}
