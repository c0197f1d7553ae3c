package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/informerd/informerd/test/standin"
)

// listServer serves pods as a list, packed for who asks for that unless it cannot.
func listServer(t *testing.T, pods *standin.Pods, packs bool, of []int) *informerd {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := io.Writer(w)
		if packs && r.Header.Get("Accept-Encoding") == packedList {
			w.Header().Set("Content-Encoding", packedList)
			z := gzip.NewWriter(w)
			defer z.Close()
			to = z
		}
		fmt.Fprint(to, `{"kind":"PodList","items":[`)
		for n, i := range of {
			to.Write(pods.AppendItem([]byte(",")[:min(n, 1)], i, 7))
		}
		fmt.Fprint(to, "]}\n")
	}))
	t.Cleanup(server.Close)
	return &informerd{url: server.URL, http: server.Client()}
}

func TestCheckLists(t *testing.T) {
	pods := standin.NewPods(3)
	l := &large{pods: pods}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	if err := l.checkLists(t.Context(), client, listServer(t, pods, true, []int{0, 1, 2})); err != nil {
		t.Error(err)
	}
	want := int64(len(`{"kind":"PodList","items":[,,]}`) + 1)
	for i := range 3 {
		want += int64(len(pods.AppendItem(nil, i, 7)))
	}
	if l.listBytes != want {
		t.Errorf("a list has %d bytes, want %d", l.listBytes, want)
	}
	if err := l.checkLists(t.Context(), client, listServer(t, pods, true, []int{0, 2})); err == nil || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("a list without a pod: %v", err)
	}
	if err := l.checkLists(t.Context(), client, listServer(t, pods, false, []int{0, 1, 2})); err == nil || !strings.Contains(err.Error(), "encoding") {
		t.Errorf("a list that is not packed: %v", err)
	}
}

// TestPagedList: pages are read until there are no more, and all pods have to be in them.
func TestPagedList(t *testing.T) {
	l := &large{pods: standin.NewPods(1200)}
	for name, c := range map[string]struct {
		pods int
		want string // of the error; empty: none
	}{"all": {1200, ""}, "fewer": {1100, "100 of 1200"}, "more": {1300, "no such pod"}} {
		server := httptest.NewServer(standin.New(c.pods))
		l.lists = map[string]*lists{pagedList: {}}
		i := &informerd{url: server.URL, process: &process{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}}
		err := l.pagedList(t.Context(), server.Client(), i)
		server.Close()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		if growth := l.lists[pagedList].growth; err == nil && len(growth) != 1 {
			t.Errorf("%s: this process grew by %v bytes", name, growth)
		}
	}
}

func TestDrain(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		fmt.Fprint(w, "abc")
		fmt.Fprint(w, "de")
		w.Close()
	}()
	start := time.Now()
	if n, first, err := drain(r, start); n != 5 || first <= 0 || first > time.Since(start) || err != nil {
		t.Errorf("%d bytes, the first after %s (%v)", n, first, err)
	}
	broken := errors.New("broken")
	if _, _, err := drain(io.MultiReader(strings.NewReader("abc"), failing{broken}), start); !errors.Is(err, broken) || !strings.Contains(err.Error(), "after 3 bytes") {
		t.Errorf("of a stream that breaks: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRate(t *testing.T) {
	if got := rate(600e6, []float64{2, 3, 0}); !slices.Equal(got, []float64{300e6, 200e6, 60e9}) {
		t.Errorf("rate of 600 MB in 2 and 3 s, and in less than can be told = %v", got)
	}
}

func TestWatchGrowth(t *testing.T) {
	debug.FreeOSMemory() // what is free is not given back meanwhile
	growth, err := watchGrowth(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	const more = 64 << 20
	// Go's heap might have so much that is free, and counted before.
	memory, err := syscall.Mmap(-1, 0, more, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(memory) }()
	for i := range memory {
		memory[i] = 1
	}
	if got := growth(); got < more/2 || got > 4*more {
		t.Errorf("%d bytes more are seen as %.0f", len(memory), got)
	}
	if _, err := watchGrowth(-1); err == nil {
		t.Error("a process that is not there has memory")
	}
}
