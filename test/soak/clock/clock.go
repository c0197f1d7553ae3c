// Package clock builds an informerd whose wall clock can be set apart from the
// machine's: with a package time of the standard library that adds an offset from a
// file. Nothing of informerd itself is another, and all of it, its libraries included,
// sees the clock jump. What is built is for the soak alone.
package clock

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Env names the file with the offset in seconds, to the program.
const Env = "INFORMERD_CLOCK"

//go:embed offset.go.txt
var offset []byte

// The one line of time.Now that is another.
const (
	reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	adds  = reads + "\tsec += wallOffset()\n"
)

// Build builds package pkg of the module at root, with tags, to the file program.
func Build(ctx context.Context, root, pkg, tags, program string) error {
	dir, err := os.MkdirTemp("", "informerd-clock-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := write(ctx, dir)
	if err != nil {
		return err
	}
	// Another soak may be running the program, or building it.
	built := fmt.Sprintf("%s.%d", program, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-overlay", overlay, "-tags", tags, "-o", built, pkg)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s with a clock that jumps: %w: %.2000s", pkg, err, out)
	}
	return os.Rename(built, program)
}

// write writes the overlay to dir, and returns its file.
func write(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the standard library: %w", err)
	}
	std := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.ReadFile(filepath.Join(std, "time.go"))
	if err != nil {
		return "", err
	}
	if bytes.Count(source, []byte(reads)) != 1 {
		return "", errors.New("time.Now of this Go is another than is known here")
	}
	source = bytes.Replace(source, []byte(reads), []byte(adds), 1)
	files := map[string]string{}
	for name, text := range map[string][]byte{"time.go": source, "offset.go": offset} {
		files[filepath.Join(std, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}
