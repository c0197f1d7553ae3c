// Command make makes what is given to others: images and releases. The Makefile of the
// project calls it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/informerd/informerd/deploy/build"
	"github.com/informerd/informerd/deploy/image"
	"github.com/informerd/informerd/deploy/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// job is what both commands are told.
type job struct {
	source  build.Source
	targets string
	out     string
}

func (j *job) flags(f *flag.FlagSet, targets, out string) {
	f.StringVar(&j.source.Root, "root", "..", "the top of the project")
	f.StringVar(&j.source.Version, "version", "dev", "what the binaries say they are")
	f.StringVar(&j.targets, "targets", targets, "what to build for")
	f.StringVar(&j.out, "out", out, "the folder for what is made")
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to make: image or release")
	}
	var j job
	f := flag.NewFlagSet("make "+args[0], flag.ContinueOnError)
	var err error
	if j.source.Time, err = build.Epoch(); err != nil {
		return err
	}
	switch args[0] {
	case "image":
		var base, push string
		j.flags(f, "linux/amd64,linux/arm64", "../bin/image")
		f.StringVar(&base, "base", "", "what to build on: the folder of an image layout, or a reference; empty is nothing")
		f.StringVar(&push, "push", "", "where to push it, such as registry.example.com/informerd:v1")
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		return j.image(ctx, base, push)
	case "release":
		j.flags(f, release.Targets, "../bin/release")
		if err := f.Parse(args[1:]); err != nil {
			return err
		}
		return j.release(ctx)
	}
	return fmt.Errorf("cannot make %q: image or release", args[0])
}

func (j *job) image(ctx context.Context, base, push string) error {
	targets, err := build.ParseTargets(j.targets)
	if err != nil {
		return err
	}
	var from v1.ImageIndex
	if base != "" {
		if from, err = image.Base(ctx, base); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		return err
	}
	built, err := image.Build(ctx, image.Options{Source: j.source, Targets: targets, Base: from, Folder: j.out})
	if err != nil {
		return err
	}
	archive := filepath.Join(j.out, "informerd-"+tag(j.source.Version)+".tar")
	if err := image.WriteArchive(archive, built.Index, tag(j.source.Version), j.source.Time); err != nil {
		return err
	}
	digest, err := built.Index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s  %s\n", archive, digest)
	if push == "" {
		return nil
	}
	pushed, err := image.Push(ctx, push, built.Index)
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", push, pushed)
	return nil
}

// tag is a version as tags of images may be written.
func tag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func (j *job) release(ctx context.Context) error {
	targets, err := build.ParseTargets(j.targets)
	if err != nil {
		return err
	}
	files, err := release.Make(ctx, j.source, targets, j.out)
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Println(filepath.Join(j.out, f))
	}
	return nil
}
