package config_test

import (
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
	"github.com/informerd/informerd/server"
)

func TestPrepare(t *testing.T) {
	for text, want := range map[string]server.Prepared{
		"":                         {},
		"prepare:":                 {},
		"prepare: []":              {},
		"prepare: [graph]":         {Graph: true},
		"prepare: [search, graph]": {Graph: true, Search: true},
	} {
		got, err := config.Parse("f", []byte(text))
		if err != nil || got.Prepare != want {
			t.Errorf("%q: %+v (%v), want %+v", text, got.Prepare, err, want)
		}
	}
	for text, want := range map[string]string{
		"prepare: [serach]": `prepare[0]: bad value "serach": did you mean "search"?`,
		"prepare: [health]": `prepare[0]: bad value "health"`,
		"prepare: search":   "prepare: ",
		"prepare: [1]":      "prepare[0]: is the number 1, needs text",
	} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
