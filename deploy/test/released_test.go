package test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/informerd/informerd/deploy/build"
	"github.com/informerd/informerd/deploy/release"
)

// targets are those that are released in a test: this machine's, as others take
// minutes to compile. DEPLOY_TARGETS=all takes all.
func targets(t *testing.T) []build.Target {
	t.Helper()
	text := os.Getenv("DEPLOY_TARGETS")
	switch text {
	case "":
		target, err := native()
		if err != nil {
			t.Fatal(err)
		}
		return []build.Target{target}
	case "all":
		text = release.Targets
	}
	all, err := build.ParseTargets(text)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRelease: for each target there is an archive with a binary for it, whose
// checksum is right, and a description.
func TestRelease(t *testing.T) {
	folder := t.TempDir()
	files, err := release.Make(t.Context(), source, targets(t), folder)
	if err != nil {
		t.Fatal(err)
	}
	sums := checksums(t, folder)
	if left, err := os.ReadDir(folder); err != nil || len(left) != len(files) || len(sums) != len(files)-1 {
		t.Errorf("%d files are left, %d are named and %d have a checksum: %v", len(left), len(files), len(sums), err)
	}
	for _, target := range targets(t) {
		name := fmt.Sprintf("informerd_0.0.0-test_%s_%s", target.OS, target.Arch)
		archive := map[bool]string{true: name + ".zip", false: name + ".tar.gz"}[target.OS == "windows"]
		if sums[archive] == "" || sums[name+".cdx.json"] == "" {
			t.Errorf("%s: no checksums of archive and description, but %v", target, sums)
		}
		contents := contentsOf(t, filepath.Join(folder, archive))
		binary := map[bool]string{true: "informerd.exe", false: "informerd"}[target.OS == "windows"]
		for _, inside := range []string{binary, "LICENSE", "README.md", "config.yaml"} {
			if len(contents[name+"/"+inside]) == 0 {
				t.Errorf("%s has no %s", archive, inside)
			}
		}
		info, err := buildinfo.Read(bytes.NewReader(contents[name+"/"+binary]))
		if err != nil {
			t.Fatal(err)
		}
		if got := build.Of(info); got != target || build.Setting(info, "CGO_ENABLED") != "0" {
			t.Errorf("the binary for %s is for %s", target, got)
		}
	}
}

// checksums reads the file of checksums and holds each file to its own.
func checksums(t *testing.T, folder string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, release.Checksums))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok {
			t.Fatalf("bad line %q", line)
		}
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s has the checksum %s, not %s", file, got, sum)
		}
		sums[file] = sum
	}
	return sums
}

func contentsOf(t *testing.T, archive string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	if strings.HasSuffix(archive, ".zip") {
		z, err := zip.OpenReader(archive)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			if all[f.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
			r.Close()
		}
		return all
	}
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range entries(t, z) {
		if !e.ModTime.Equal(source.Time) {
			t.Errorf("%s is of %s", name, e.ModTime)
		}
		if program := strings.Contains(filepath.Base(name), "informerd"); program != (e.Mode&0o111 != 0) {
			t.Errorf("%s has the mode %o", name, e.Mode)
		}
		all[name] = e.data
	}
	return all
}

func TestTargets(t *testing.T) {
	if all, err := build.ParseTargets(release.Targets); err != nil || len(all) != 6 {
		t.Errorf("ParseTargets() = %v, %v", all, err)
	}
	for _, bad := range []string{"", "linux", "linux/", "/amd64", "linux/arm/v7", "linux/amd64,"} {
		if _, err := build.ParseTargets(bad); err == nil {
			t.Errorf("ParseTargets(%q) is no error", bad)
		}
	}
}
