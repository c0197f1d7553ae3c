package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/cmd/informerd/config"
)

func TestAudit(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	probes := []string{"/livez", "/healthz", "/readyz"}
	for text, want := range map[string]config.Audit{
		"":                   {MaxSizeMB: 100, MaxBackups: 5, Omit: probes},
		"audit: {}":          {MaxSizeMB: 100, MaxBackups: 5, Omit: probes},
		"audit: {file: '-'}": {File: "-", MaxSizeMB: 100, MaxBackups: 5, Omit: probes},
		"audit: {file: ~/a.log, maxSizeMB: 0, maxBackups: 9, omit: [/metrics]}": {File: home + "/a.log", MaxBackups: 9, Omit: []string{"/metrics"}},
		"audit: {omit: []}": {MaxSizeMB: 100, MaxBackups: 5, Omit: []string{}},
	} {
		c, err := config.Parse("f", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, c.Audit); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestBadAudit(t *testing.T) {
	for text, want := range map[string]string{
		"audit: x.log":                          `audit: is "x.log", needs keys and values`,
		"audit: {path: x}":                      "audit.path: unknown key",
		"audit: {file: 7}":                      "audit.file: is the number 7, needs text",
		"audit: {maxSizeMB: -1}":                "audit.maxSizeMB: -1 is out of range: from 0 to 65536",
		"audit: {maxSizeMB: 100MB}":             "audit.maxSizeMB: is",
		"audit: {maxBackups: 0}":                "audit.maxBackups: 0 is out of range: from 1 to 1000",
		"audit: {omit: /readyz}":                "audit.omit: is",
		"audit: {omit: [readyz]}":               `audit.omit[0]: bad path "readyz"`,
		"audit: {omit: [/v1/*]}":                `audit.omit[0]: bad path "/v1/*"`,
		"audit: {omit: [/a, /a]}":               `audit.omit[1]: "/a" is given twice`,
		"audit: {file: a}\nsnapshot: {path: a}": "audit.file: a is the file of the snapshot",
	} {
		_, err := config.Parse("f", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
