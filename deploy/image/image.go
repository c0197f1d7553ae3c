// Package image makes the container image of informerd without a container runtime:
// certificate authorities, a user that is not root, and one static binary. The same
// sources give the same bytes.
package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/informerd/informerd/deploy/build"
	"github.com/informerd/informerd/deploy/sbom"
)

// Options say what an image is made of.
type Options struct {
	build.Source
	Targets []build.Target
	// Base is what it is built on; nil is nothing. It has to have the targets.
	Base v1.ImageIndex
	// Folder is where binaries and their descriptions are left.
	Folder string
}

// Built is an image of all targets.
type Built struct {
	Index v1.ImageIndex
	// Binaries are those in it, by target.
	Binaries map[build.Target]string
}

// Build makes an image.
func Build(ctx context.Context, o Options) (*Built, error) {
	built := &Built{Index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex), Binaries: map[build.Target]string{}}
	for _, t := range o.Targets {
		name := filepath.Join(o.Folder, fmt.Sprintf("informerd-%s-%s", t.OS, t.Arch))
		info, err := o.Binary(ctx, t, name)
		if err != nil {
			return nil, err
		}
		if err := describe(name, info, o); err != nil {
			return nil, err
		}
		img, err := o.image(t, name)
		if err != nil {
			return nil, fmt.Errorf("make the image for %s: %w", t, err)
		}
		built.Binaries[t] = name
		built.Index = mutate.AppendManifests(built.Index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.OS, Architecture: t.Arch}},
		})
	}
	built.Index = mutate.Annotations(built.Index, o.labels()).(v1.ImageIndex)
	return built, nil
}

func describe(name string, info *debug.BuildInfo, o Options) error {
	doc, err := sbom.Of(name, info, o.Version, o.Time)
	if err != nil {
		return err
	}
	return doc.Write(name + ".cdx.json")
}

// image is the image for one target.
func (o Options) image(t build.Target, binary string) (v1.Image, error) {
	img, err := o.base(t)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	// A volume that is new takes its owner and mode from this folder.
	files := []file{{home[1:] + "/", 0o700, User, nil}, {program[1:], 0o755, 0, data}}
	if img, err = o.add(img, "informerd "+o.Version, files); err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = t.OS, t.Arch, v1.Time{Time: o.Time}
	c := &config.Config
	c.User, c.WorkingDir = strconv.Itoa(User)+":"+strconv.Itoa(User), home
	c.Entrypoint, c.Cmd = []string{program}, []string{"serve"}
	if o.Base == nil {
		c.Env = []string{"PATH=/usr/local/bin"}
	}
	c.ExposedPorts = map[string]struct{}{"8443/tcp": {}}
	c.Labels = o.labels()
	return mutate.ConfigFile(img, config)
}

// base is what an image begins with.
func (o Options) base(t build.Target) (v1.Image, error) {
	if o.Base != nil {
		return find(o.Base, t)
	}
	files, err := foundation()
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	return o.add(img, "certificate authorities and a user", files)
}

// find is the image of an index for a target.
func find(index v1.ImageIndex, t build.Target) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.OS == t.OS && m.Platform.Architecture == t.Arch {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("the base has no image for %s", t)
}

func (o Options) add(img v1.Image, what string, files []file) (v1.Image, error) {
	l, err := layer(files, o.Time)
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{
		Layer: l, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: o.Time}, CreatedBy: "make image", Comment: what},
	})
}

func (o Options) labels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       "informerd",
		"org.opencontainers.image.description": "A read replica of the Kubernetes API",
		"org.opencontainers.image.version":     o.Version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/informerd/informerd",
	}
}
