package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/informerd/informerd/cmd/informerd/config"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func clusterNames(all []config.Cluster) string {
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	// As Kubernetes mounts a Secret: links to a folder that is replaced as a whole.
	data := filepath.Join(dir, "..2026")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(data, "west"), "")
	for link, to := range map[string]string{"..data": "..2026", "west": "..data/west", "broken": "..data/broken"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "north.kubeconfig"), "")
	write(t, filepath.Join(dir, "north.yaml"), "")
	write(t, filepath.Join(dir, "east.yaml"), "")
	write(t, filepath.Join(dir, "South.yaml"), "")
	for _, no := range []string{".hidden", "east.yaml~", "west.bak", "west.tmp"} {
		write(t, filepath.Join(dir, no), "")
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	f := newFolders()
	f.now = func() time.Time { return now }
	cfg := &config.Config{Clusters: []config.Cluster{{Name: "east"}}, Folders: []config.Folder{{Path: dir, Namespaces: []string{"shop"}}}}
	check := func(when, want string, readable bool, wrong ...string) []config.Cluster {
		t.Helper()
		found := f.clusters(cfg)
		all, errs := found.all, found.wrong
		if got := clusterNames(all); got != want || found.readable != readable {
			t.Errorf("%s: clusters are %q, readable %t; want %q, %t", when, got, found.readable, want, readable)
		}
		if found.whole {
			t.Errorf("%s: one file cannot be read, and what is there is certain", when)
		}
		for _, part := range wrong {
			if !slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), part) }) {
				t.Errorf("%s: no error has %q: %v", when, part, errs)
			}
		}
		if len(errs) != len(wrong) {
			t.Errorf("%s: %d errors, want %d: %v", when, len(errs), len(wrong), errs)
		}
		return all
	}
	wrong := []string{
		"broken is left out", "pipe is left out: it is no regular file", `South.yaml is left out: a cluster is called like its file: bad name "South"`,
		"east.yaml is left out: there is a cluster east already, in the configuration",
		"north.yaml is left out: there is a cluster north already, in " + filepath.Join(dir, "north.kubeconfig"),
	}
	all := check("at first", "east north west", true, wrong...)
	want := config.Cluster{Name: "west", Kubeconfig: filepath.Join(dir, "west"), Namespaces: []string{"shop"}, Follows: true}
	if !all[2].Equal(want) {
		t.Errorf("west is %+v", all[2])
	}

	// A file that is away for a moment is being written.
	if err := os.Remove(filepath.Join(dir, "west")); err != nil {
		t.Fatal(err)
	}
	check("one is away", "east north west", true, wrong...)
	now = now.Add(absentFor - time.Second)
	check("not for long", "east north west", true, wrong...)
	now = now.Add(time.Second)
	check("gone", "east north", true, wrong...)

	// Who has a name keeps it; who comes has it when the other has gone.
	write(t, filepath.Join(dir, "north"), "")
	check("one of the same name comes", "east north", true, wrong...)
	all = check("it is not written to any more", "east north", true, append(wrong[:4:4], "north is left out", "north.yaml is left out")...)
	if got := filepath.Base(all[1].Kubeconfig); got != "north.kubeconfig" {
		t.Errorf("north is read from %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "north.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	all = check("the first goes", "east north", true, append(wrong[:4:4], "north.yaml is left out")...)
	if got := filepath.Base(all[1].Kubeconfig); got != "north" {
		t.Errorf("north is read from %s", got)
	}

	// Of a folder that cannot be read nothing has gone.
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	check("the folder is away", "east north", false, "read the folder of clusters: open "+dir)
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	f.clusters(cfg)
	check("it is back", "east north", true, append(wrong[:4:4], "north.yaml is left out")...)

	// What is empty all of a sudden may have lost what is mounted there.
	for _, name := range []string{"north", "north.yaml", "east.yaml", "South.yaml", "pipe", "broken"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	empty := func(when, want string, after time.Duration) {
		t.Helper()
		now = now.Add(after)
		if got := clusterNames(f.clusters(cfg).all); got != want {
			t.Errorf("%s: clusters are %q, want %q", when, got, want)
		}
	}
	empty("empty", "east north", 0)
	empty("for a while", "east north", emptyFor-time.Second)
	empty("for long", "east", time.Second)
}

// TestFoldersLate: a file that is still written to, or that is only there for a moment, is
// no cluster yet. At the start those that are there count at once.
func TestFoldersLate(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "east"), "x")
	f := newFolders()
	cfg := &config.Config{Folders: []config.Folder{{Path: dir}}}
	check := func(when, want string) {
		t.Helper()
		if got := clusterNames(f.clusters(cfg).all); got != want {
			t.Errorf("%s: clusters are %q, want %q", when, got, want)
		}
	}
	check("at the start", "east")
	write(t, filepath.Join(dir, "west"), "x")
	check("comes", "east")
	write(t, filepath.Join(dir, "west"), "xy")
	check("grows", "east")
	check("is there", "east west")
	write(t, filepath.Join(dir, "west"), "xyz")
	check("changes", "east west")
}
