package config_test

import (
	"strings"
	"testing"

	"github.com/informerd/informerd/cmd/informerd/config"
)

func TestPprof(t *testing.T) {
	for text, want := range map[string]string{"": "", "pprof: ''": "", "pprof: localhost:6060": "localhost:6060", "pprof: '[::1]:0'": "[::1]:0"} {
		if c, err := config.Parse("f", []byte(text)); err != nil || c.Pprof != want {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	for text, want := range map[string]string{
		"pprof: :6060":         `pprof: address of profiles ":6060" is not a loopback address`,
		"pprof: 10.0.0.1:6060": "write 127.0.0.1:6060",
		"pprof: 6060":          "pprof: is the number 6060, needs text",
		"pprof: true":          "pprof: is true, needs text",
	} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
