package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// WriteArchive writes an OCI archive, which podman, skopeo, containerd and Docker load:
// an image layout in a tar.
func WriteArchive(file string, index v1.ImageIndex, tag string, at time.Time) error {
	folder, err := os.MkdirTemp(filepath.Dir(file), ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	outer := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": tag}},
	})
	if _, err := layout.Write(folder, outer); err != nil {
		return fmt.Errorf("write the image layout: %w", err)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pack(out, folder, at); err != nil {
		return fmt.Errorf("pack the image: %w", err)
	}
	return out.Close()
}

// pack writes a folder as a tar, in the order of names and with one age.
func pack(w io.Writer, folder string, at time.Time) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(data)), ModTime: at, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err = t.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	return t.Close()
}

// Push sends an image to a registry, with the credentials that docker login or podman
// login left.
func Push(ctx context.Context, reference string, index v1.ImageIndex) (digest string, err error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return "", err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	hash, err := index.Digest()
	return hash.String(), err
}

// Base finds what to build on: the folder of an image layout, or a reference.
func Base(ctx context.Context, where string) (v1.ImageIndex, error) {
	if info, err := os.Stat(where); err == nil && info.IsDir() {
		p, err := layout.FromPath(where)
		if err != nil {
			return nil, fmt.Errorf("read base %s: %w", where, err)
		}
		index, err := p.ImageIndex()
		if err != nil {
			return nil, fmt.Errorf("read base %s: %w", where, err)
		}
		return inner(index)
	}
	ref, err := name.ParseReference(where)
	if err != nil {
		return nil, err
	}
	index, err := remote.Index(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("read base %s: %w", ref, err)
	}
	return index, nil
}

// inner is the one index that a layout holds, or itself if it holds images.
func inner(index v1.ImageIndex) (v1.ImageIndex, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) == 1 && manifest.Manifests[0].MediaType.IsIndex() {
		return index.ImageIndex(manifest.Manifests[0].Digest)
	}
	return index, nil
}
