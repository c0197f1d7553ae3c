package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestUsed(t *testing.T) {
	for name, c := range map[string]struct {
		row  Row
		want float64
	}{
		"ratio":              {Row{Ours: figure(1), Peer: figure(30), Bar: ratioAtMost(1.0 / 15)}, 0.5},
		"throughput":         {Row{Ours: figure(40), Peer: figure(1), Bar: ratioAtLeast(20)}, 0.5},
		"figure":             {Row{Ours: figure(1), Bar: atMost(0.5)}, 2},
		"nothing of nothing": {Row{Ours: figure(0), Bar: atMost(0)}, 0},
		"one of nothing":     {Row{Ours: figure(1), Bar: atMost(0)}, math.Inf(1)},
		"no peer":            {Row{Ours: figure(1), Bar: ratioAtMost(1)}, math.Inf(1)},
		"no peer, at least":  {Row{Ours: figure(1), Bar: ratioAtLeast(1)}, math.Inf(1)},
	} {
		if got := c.row.used(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPicture(t *testing.T) {
	r := testReport()
	r.Rows = append(r.Rows,
		Row{What: "no claim", Unit: unitBytes, Ours: figure(1)},
		Row{What: "a <b> & c", Unit: unitCount, Ours: figure(0), Bar: atMost(0)})
	first := r.picture()
	if !bytes.Equal(first, r.picture()) {
		t.Error("two pictures of one report differ")
	}
	classes, texts := elements(t, first)
	for class, want := range map[string]int{"held": 2, "missed": 2, "track": 4, "bar": 1} {
		if classes[class] != want {
			t.Errorf("%d elements of class %s, want %d", classes[class], class, want)
		}
	}
	for _, want := range []string{"memory", "1 MB", "20 MB the other", "≤ 1/15", "a <b> & c"} {
		if !strings.Contains(texts, "|"+want+"|") {
			t.Errorf("%q is not in %s", want, texts)
		}
	}
	if strings.Contains(texts, "no claim") {
		t.Error("a row without a bar is drawn")
	}
}

// elements reads a picture: how many elements each class has, and all texts.
func elements(t *testing.T, picture []byte) (classes map[string]int, texts string) {
	t.Helper()
	classes, texts = map[string]int{}, "|"
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return classes, texts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, picture)
		}
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					classes[a.Value]++
				}
			}
		case xml.CharData:
			texts += string(token) + "|"
		}
	}
}
