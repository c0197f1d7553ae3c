// Package sbom writes down what a Go binary is made of, as CycloneDX 1.6, from what the
// binary says itself: nothing is in it that is not listed, and nothing is listed that
// was only needed to build or test it.
package sbom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Document is a CycloneDX document, as far as it is used here.
type Document struct {
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     Metadata     `json:"metadata"`
	Components   []Component  `json:"components"`
	Dependencies []Dependency `json:"dependencies"`
}

// Metadata says what a Document is about.
type Metadata struct {
	Timestamp string    `json:"timestamp"`
	Component Component `json:"component"`
}

// Component is a program or a library.
type Component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []Hash     `json:"hashes,omitempty"`
	Properties []Property `json:"properties,omitempty"`
}

// Hash is one of a file.
type Hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// Property is anything else.
type Property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Dependency says what a component is made of.
type Dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// Of describes the binary in a file.
func Of(file string, info *debug.BuildInfo, version string, at time.Time) (*Document, error) {
	sum, err := fileSum(file)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", file, err)
	}
	program := component("application", info.Main.Path, version)
	program.Name = "informerd"
	program.Hashes = []Hash{{"SHA-256", sum}}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "GO") || s.Key == "CGO_ENABLED" || s.Key == "-tags" {
			program.Properties = append(program.Properties, Property{"golang:build:" + s.Key, s.Value})
		}
	}
	d := &Document{
		BOMFormat: "CycloneDX", SpecVersion: "1.6", SerialNumber: serial(sum), Version: 1,
		Metadata:   Metadata{at.UTC().Format(time.RFC3339), program},
		Components: []Component{component("library", "std", strings.TrimPrefix(info.GoVersion, "go"))},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		c := component("library", m.Path, m.Version)
		if m.Sum != "" {
			c.Properties = []Property{{"golang:sum", m.Sum}}
		}
		d.Components = append(d.Components, c)
	}
	slices.SortFunc(d.Components, func(a, b Component) int { return cmp.Compare(a.Ref, b.Ref) })
	uses := make([]string, len(d.Components))
	for n, c := range d.Components {
		uses[n] = c.Ref
	}
	d.Dependencies = []Dependency{{program.Ref, uses}}
	return d, nil
}

func component(kind, path, version string) Component {
	purl := "pkg:golang/" + path + "@" + version
	return Component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// Write writes d to a file.
func (d *Document) Write(file string) error {
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func fileSum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// serial is a UUID made of the binary's hash, so that the same binary has the same.
func serial(sum string) string {
	h := sha256.Sum256([]byte("informerd " + sum))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}
