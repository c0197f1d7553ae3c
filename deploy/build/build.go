// Package build makes informerd's binaries as they are given to others: static,
// without paths of the machine they were made on, and the same bytes wherever the same
// Go makes them of the same sources.
package build

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Target is what a binary is for.
type Target struct{ OS, Arch string }

func (t Target) String() string { return t.OS + "/" + t.Arch }

// ParseTargets reads linux/amd64,linux/arm64.
func ParseTargets(text string) ([]Target, error) {
	var all []Target
	for one := range strings.SplitSeq(text, ",") {
		goos, arch, ok := strings.Cut(strings.TrimSpace(one), "/")
		if !ok || goos == "" || arch == "" || strings.Contains(arch, "/") {
			return nil, fmt.Errorf("bad target %q: write it as linux/amd64", one)
		}
		all = append(all, Target{goos, arch})
	}
	return all, nil
}

// Source is what binaries are made of.
type Source struct {
	// Root is the top of the project.
	Root string
	// Version is what the binaries say they are.
	Version string
	// Time is the age of everything that has one, so that it does not depend on when
	// it was made.
	Time time.Time
}

// Epoch is the time that SOURCE_DATE_EPOCH names, which stands for that of the
// sources; 1970 if it is not set.
func Epoch() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Binary builds informerd for a target into a file, and returns what is in it.
func (s Source) Binary(ctx context.Context, t Target, file string) (*debug.BuildInfo, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	// The names of time zones are built in: neither an image that is otherwise empty
	// nor Windows has them, and filters may name one.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata",
		"-ldflags", "-s -w -X main.version="+s.Version, "-o", file, "./cmd/informerd")
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build for %s: %w\n%s", t, err, out)
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what was built for %s: %w", t, err)
	}
	if got := Of(info); got != t {
		return nil, fmt.Errorf("what was built for %s is for %s", t, got)
	}
	return info, nil
}

// Of is what a binary is for.
func Of(info *debug.BuildInfo) Target {
	return Target{Setting(info, "GOOS"), Setting(info, "GOARCH")}
}

// Setting is one of the settings that a binary was built with, "" if it is not told.
func Setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
