package config

import (
	"strings"
	"testing"
)

// TestCheckReplicas: what is said by the file and the flags together.
func TestCheckReplicas(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"alone", func(c *Config) { c.Replicas = nil }, ""},
		{"loopback", func(c *Config) { c.Replicas.URL = "http://127.0.0.1:8080" }, ""},
		{"TLS", func(c *Config) { c.Replicas.URL = "https://10.0.0.7:8080" }, ""},
		{"no URL", func(c *Config) {}, "replicas.url, or --replica-url"},
		{"plain HTTP", func(c *Config) { c.Replicas.URL = "http://10.0.0.7:8080" }, "over plain HTTP"},
		{"plain HTTP that is wanted", func(c *Config) { c.Replicas.URL, c.PlainHTTP = "http://10.0.0.7:8080", true }, ""},
		{"handlers", func(c *Config) { c.Replicas.URL, c.Handlers = "https://h:1", []Handler{{}} }, "snapshot.postgres"},
		{"handlers and a database", func(c *Config) {
			c.Replicas.URL, c.Handlers, c.Snapshot.Postgres = "https://h:1", []Handler{{}}, &Postgres{}
		}, ""},
	} {
		c := Default()
		c.Replicas = defaultReplicas()
		test.change(c)
		err := c.CheckReplicas()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}
