package control

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDo(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 12))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	for name, dir := range map[string]string{"short": short, "too long for a socket": long} {
		t.Run(name, func(t *testing.T) {
			testDo(t, dir)
		})
	}
}

func testDo(t *testing.T, dir string) {
	// A socket left behind by a crash must not be in the way.
	if err := os.WriteFile(filepath.Join(dir, "control.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	socket := listener.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	var got []string
	go func() {
		served <- Serve(ctx, listener, func(_ context.Context, action, component string) error {
			got = append(got, action+" "+component)
			if component == "nothing" {
				return errors.New("there is no component nothing")
			}
			return nil
		})
	}()

	if err := Do(t.Context(), socket, "stop", "etcd"); err != nil {
		t.Error(err)
	}
	if err := Do(t.Context(), socket, "start", "nothing"); err == nil || err.Error() != "there is no component nothing" {
		t.Errorf("Do(nothing) = %v", err)
	}
	if err := Do(t.Context(), socket, "explode", "etcd"); err == nil || !strings.Contains(err.Error(), "start, stop, kill") {
		t.Errorf("Do(explode) = %v, want the list of actions", err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if want := "stop etcd,start nothing"; strings.Join(got, ",") != want {
		t.Errorf("handled %q, want %s", got, want)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
