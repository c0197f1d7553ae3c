// Package test holds what is given to operators to what it says: the chart, the
// manifests made of it, the image and the release.
package test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/informerd/informerd/deploy/build"
)

// root is the top of the project, seen from here.
const root = "../.."

var update = flag.Bool("update", false, "write what is made of other files anew")

// source is what the tests build.
var source = build.Source{Root: root, Version: "v0.0.0-test", Time: time.Unix(1700000000, 0).UTC()}

var work string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if work, err = os.MkdirTemp("", "informerd-deploy-"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(work)
		return m.Run()
	}())
}

// native is what this machine runs.
var native = sync.OnceValues(func() (build.Target, error) {
	out, err := exec.Command("go", "env", "GOHOSTOS", "GOHOSTARCH").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) != 2 {
		return build.Target{}, err
	}
	return build.Target{OS: words[0], Arch: words[1]}, nil
})

// informerd is a binary for this machine, built once.
var informerd = sync.OnceValues(func() (string, error) {
	target, err := native()
	if err != nil {
		return "", err
	}
	file := filepath.Join(work, "informerd")
	_, err = source.Binary(context.Background(), target, file)
	return file, err
})

// program runs informerd, without any cluster at hand.
func program(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	file, err := informerd()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	cmd := exec.Command(file, args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH="}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// golden compares a file of the project with what it is made from.
func golden(t *testing.T, file, want string) {
	t.Helper()
	file = filepath.Join(root, file)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is not what it is made from, make manifests writes it anew (-file +made):\n%s", file, diff)
	}
}
