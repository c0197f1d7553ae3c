// Package release makes what is given to people who do not build informerd themselves:
// a binary in an archive for each target, what it is made of, and checksums.
package release

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/deploy/build"
	"github.com/informerd/informerd/deploy/sbom"
)

// Targets are what binaries are made for.
const Targets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// Checksums is the file with the checksums of all others, as sha256sum -c reads it.
const Checksums = "SHA256SUMS"

// beside is what an archive has beside the binary, from the top of the project.
var beside = []string{"LICENSE", "README.md", "config.yaml"}

// Make leaves a release in a folder, and returns the names of its files.
func Make(ctx context.Context, s build.Source, targets []build.Target, folder string) ([]string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	var files []string
	for _, t := range targets {
		made, err := one(ctx, s, t, folder)
		if err != nil {
			return nil, err
		}
		files = append(files, made...)
	}
	slices.Sort(files)
	if err := writeSums(folder, files); err != nil {
		return nil, fmt.Errorf("write checksums: %w", err)
	}
	return append(files, Checksums), nil
}

// one makes the archive and the description of one target.
func one(ctx context.Context, s build.Source, t build.Target, folder string) ([]string, error) {
	work, err := os.MkdirTemp(folder, ".build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, "informerd")
	if t.OS == "windows" {
		binary += ".exe"
	}
	info, err := s.Binary(ctx, t, binary)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("informerd_%s_%s_%s", strings.TrimPrefix(s.Version, "v"), t.OS, t.Arch)
	doc, err := sbom.Of(binary, info, s.Version, s.Time)
	if err != nil {
		return nil, err
	}
	if err := doc.Write(filepath.Join(folder, name+".cdx.json")); err != nil {
		return nil, err
	}
	contents := []string{binary}
	for _, b := range beside {
		contents = append(contents, filepath.Join(s.Root, b))
	}
	archive, pack := name+".tar.gz", packTar
	if t.OS == "windows" {
		archive, pack = name+".zip", packZip
	}
	if err := packInto(filepath.Join(folder, archive), pack, name, contents, s.Time); err != nil {
		return nil, fmt.Errorf("pack %s: %w", archive, err)
	}
	return []string{archive, name + ".cdx.json"}, nil
}

type packer func(w io.Writer, top string, files []string, at time.Time) error

func packInto(file string, pack packer, top string, files []string, at time.Time) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriter(out)
	if err := pack(w, top, files, at); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Close()
}

// mode is what a file in an archive may be used for.
func mode(file string) os.FileMode {
	if strings.HasPrefix(filepath.Base(file), "informerd") {
		return 0o755
	}
	return 0o644
}

func packTar(w io.Writer, top string, files []string, at time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: top + "/" + filepath.Base(file), Mode: int64(mode(file)), Size: int64(len(data)), ModTime: at, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func packZip(w io.Writer, top string, files []string, at time.Time) error {
	z := zip.NewWriter(w)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: top + "/" + filepath.Base(file), Method: zip.Deflate, Modified: at}
		h.SetMode(mode(file))
		entry, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(data); err != nil {
			return err
		}
	}
	return z.Close()
}

func writeSums(folder string, files []string) error {
	var b strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), file)
	}
	return os.WriteFile(filepath.Join(folder, Checksums), []byte(b.String()), 0o644)
}
