package clock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const program = `package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	before := time.Now()
	os.WriteFile(os.Getenv("INFORMERD_CLOCK"), []byte(os.Args[1]), 0o600)
	for range 500 {
		time.Sleep(20 * time.Millisecond)
		if time.Now().Unix()-before.Unix() >= 3600 {
			break
		}
	}
	after := time.Now()
	fmt.Println(after.Unix()-before.Unix() >= 3600, after.Sub(before) < time.Minute)
}
`

// TestBuild: a program's wall clock jumps, and the time that passes does not.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.26\n", "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Build(t.Context(), dir, ".", "", filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "x"), "3600")
	cmd.Env = append(os.Environ(), Env+"="+filepath.Join(dir, "clock"))
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "true true" {
		t.Errorf("%q, %v", out, err)
	}
}
