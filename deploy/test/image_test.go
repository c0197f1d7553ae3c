package test

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/informerd/informerd/deploy/build"
	"github.com/informerd/informerd/deploy/image"
	"github.com/informerd/informerd/deploy/sbom"
)

// here is this machine, in a container: of one target, which is enough to see that all
// is there. make image builds two.
func here(t *testing.T) build.Target {
	t.Helper()
	target, err := native()
	if err != nil {
		t.Fatal(err)
	}
	if target.OS != "linux" {
		t.Skip("containers run Linux")
	}
	return target
}

func buildImage(t *testing.T, base v1.ImageIndex) (*image.Built, build.Target) {
	t.Helper()
	target := here(t)
	built, err := image.Build(t.Context(), image.Options{Source: source, Targets: []build.Target{target}, Base: base, Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return built, target
}

func only(t *testing.T, index v1.ImageIndex) (v1.Image, v1.Descriptor) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("%d images, want one", len(manifest.Manifests))
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img, manifest.Manifests[0]
}

// entry is a file of an image.
type entry struct {
	*tar.Header
	data []byte
}

func entries(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	all := map[string]entry{}
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		all[path.Clean(h.Name)] = entry{h, data}
	}
}

// TestImage: the archive holds an image that runs informerd as nobody, with nothing
// beside it, and the same sources make the same bytes.
func TestImage(t *testing.T) {
	built, target := buildImage(t, nil)
	archive := filepath.Join(t.TempDir(), "image.tar")
	if err := image.WriteArchive(archive, built.Index, "v1", source.Time); err != nil {
		t.Fatal(err)
	}
	folder := unpack(t, archive)
	index, err := image.Base(t.Context(), folder) // reads a layout as anybody would
	if err != nil {
		t.Fatal(err)
	}
	img, descriptor := only(t, index)
	if p := descriptor.Platform; p == nil || p.OS != "linux" || p.Architecture != target.Arch {
		t.Errorf("platform is %v", p)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := config.Config
	if c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/informerd"}) || !slices.Equal(c.Cmd, []string{"serve"}) {
		t.Errorf("runs %v %v as %s", c.Entrypoint, c.Cmd, c.User)
	}
	if config.OS != "linux" || config.Architecture != target.Arch || !config.Created.Equal(source.Time) || c.Labels["org.opencontainers.image.version"] != source.Version {
		t.Errorf("config is %+v", config)
	}
	if len(config.RootFS.DiffIDs) != 2 || len(config.History) != 2 {
		t.Errorf("%d layers and %d of history, want 2", len(config.RootFS.DiffIDs), len(config.History))
	}
	flat := mutate.Extract(img)
	defer flat.Close()
	files := entries(t, flat)
	checkFiles(t, files)
	runs(t, files["usr/local/bin/informerd"].data)

	again, _ := buildImage(t, nil)
	one, two := digest(t, built.Index), digest(t, again.Index)
	if one != two {
		t.Errorf("the same sources made %s and %s", one, two)
	}
}

func digest(t *testing.T, index v1.ImageIndex) string {
	t.Helper()
	hash, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	folder := t.TempDir()
	for name, e := range entries(t, f) {
		if !filepath.IsLocal(name) || !e.ModTime.Equal(source.Time) {
			t.Fatalf("%s is outside of the archive, or of the age %s", name, e.ModTime)
		}
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, e.data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func checkFiles(t *testing.T, files map[string]entry) {
	t.Helper()
	for name, e := range files {
		if e.Mode&0o022 != 0 || e.Mode&0o7000 != 0 {
			t.Errorf("%s has the mode %o", name, e.Mode)
		}
		if wants := map[bool]int{true: 65532}[name == "var/lib/informerd"]; e.Uid != wants || e.Gid != wants {
			t.Errorf("%s belongs to %d:%d", name, e.Uid, e.Gid)
		}
		if e.Typeflag != tar.TypeDir && !slices.Contains([]string{"etc/passwd", "etc/group", "etc/ssl/certs/ca-certificates.crt", "usr/local/bin/informerd"}, name) {
			t.Errorf("%s is in the image", name)
		}
	}
	if home := files["var/lib/informerd"]; home.Header == nil || home.Mode != 0o700 {
		t.Error("there is no private folder for the snapshot")
	}
	if !strings.Contains(string(files["etc/passwd"].data), "nonroot:x:65532:65532:") {
		t.Errorf("passwd is %q", files["etc/passwd"].data)
	}
	if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"].data, []byte("BEGIN CERTIFICATE")); n < 50 {
		t.Errorf("%d certificate authorities, want more", n)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(files["etc/ssl/certs/ca-certificates.crt"].data) {
		t.Error("the authorities cannot be read")
	}
}

// runs: the binary in the image needs nothing around it.
func runs(t *testing.T, binary []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "informerd")
	if err := os.WriteFile(file, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(file, "version")
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "informerd "+source.Version+" ") {
		t.Errorf("informerd version: %v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if build.Setting(info, "CGO_ENABLED") != "0" || build.Setting(info, "-trimpath") != "true" {
		t.Errorf("built with %v", info.Settings)
	}
	if bytes.Contains(binary, []byte("/lib64/ld-linux")) {
		t.Error("the binary needs a dynamic linker")
	}
}

// TestImageOnABase: it can be built on another image and pushed to a registry.
func TestImageOnABase(t *testing.T) {
	base, target := buildImage(t, nil)
	folder := t.TempDir()
	if _, err := layout.Write(folder, base.Index); err != nil {
		t.Fatal(err)
	}
	from, err := image.Base(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	built, _ := buildImage(t, from)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/informerd:v1"
	pushed, err := image.Push(t.Context(), reference, built.Index)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got := digest(t, index); got != pushed {
		t.Errorf("the registry has %s, want %s", got, pushed)
	}
	img, _ := only(t, index)
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 3 {
		t.Errorf("%d layers, want those of the base and one", len(layers))
	}
	_, err = image.Build(t.Context(), image.Options{Source: source, Base: from, Folder: t.TempDir(), Targets: []build.Target{{OS: "linux", Arch: "none-" + target.Arch}}})
	if err == nil {
		t.Error("an architecture that nobody has was built")
	}
}

// TestSBOM: what the image is made of is written beside it, all of it.
func TestSBOM(t *testing.T) {
	built, target := buildImage(t, nil)
	file := built.Binaries[target]
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc sbom.Document
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if doc.BOMFormat != "CycloneDX" || doc.SpecVersion != "1.6" || doc.Metadata.Timestamp != "2023-11-14T22:13:20Z" || doc.Metadata.Component.Version != source.Version {
		t.Errorf("document is %+v", doc.Metadata)
	}
	listed := map[string]string{}
	for _, c := range doc.Components {
		if listed[c.Name] != "" || c.PURL != "pkg:golang/"+c.Name+"@"+c.Version || c.Ref != c.PURL {
			t.Errorf("component is %+v", c)
		}
		listed[c.Name] = c.Version
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if listed[m.Path] != m.Version {
			t.Errorf("%s %s is listed as %q", m.Path, m.Version, listed[m.Path])
		}
	}
	if len(listed) != len(info.Deps)+1 || "go"+listed["std"] != info.GoVersion {
		t.Errorf("%d components of %d modules, Go %s", len(listed), len(info.Deps), listed["std"])
	}
	if uses := doc.Dependencies[0]; uses.Ref != doc.Metadata.Component.Ref || len(uses.DependsOn) != len(listed) {
		t.Errorf("the program uses %d components", len(uses.DependsOn))
	}
}
