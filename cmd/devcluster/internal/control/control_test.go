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
		served <- Serve(ctx, listener, func(_ context.Context, order Order) (any, error) {
			got = append(got, strings.Join(append([]string{order.Action}, order.Args...), " "))
			switch {
			case order.Action == "explode":
				return nil, errors.New("nothing explodes here")
			case order.Body != nil:
				return map[string]int{"bytes": len(order.Body), "n": order.Flags["n"]}, nil
			}
			return nil, nil
		})
	}()

	if result, err := Do(t.Context(), socket, Order{Action: "stop", Args: []string{"etcd"}}); err != nil || result != nil {
		t.Errorf("Do(stop) = %s, %v", result, err)
	}
	if _, err := Do(t.Context(), socket, Order{Action: "explode"}); err == nil || err.Error() != "nothing explodes here" {
		t.Errorf("Do(explode) = %v", err)
	}
	order := Order{Action: "eat", Body: []byte(`{"a":1}`), Flags: map[string]int{"n": 3}}
	if result, err := Do(t.Context(), socket, order); err != nil || string(result) != `{"bytes":7,"n":3}` {
		t.Errorf("Do(eat) = %s, %v", result, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if want := "stop etcd,explode,eat"; strings.Join(got, ",") != want {
		t.Errorf("handled %q, want %s", got, want)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
