package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	write(t, filepath.Join(dir, ".hidden"), "")
	now := time.Unix(1000, 0)
	f := newFolders()
	f.now = func() time.Time { return now }
	cfg := &config.Config{Clusters: []config.Cluster{{Name: "east"}}, Folders: []config.Folder{{Path: dir, Namespaces: []string{"shop"}}}}
	check := func(when, want string, whole bool, wrong ...string) []config.Cluster {
		t.Helper()
		all, errs, ok := f.clusters(cfg)
		if got := clusterNames(all); got != want || ok != whole {
			t.Errorf("%s: clusters are %q, whole %t; want %q, %t", when, got, ok, want, whole)
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
		"broken is left out", `South.yaml is left out: a cluster is called like its file: bad name "South"`,
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

	// One that takes another extension is there all the time.
	if err := os.Rename(filepath.Join(dir, "north.kubeconfig"), filepath.Join(dir, "north.conf")); err != nil {
		t.Fatal(err)
	}
	all = check("renamed", "east north", true, append(wrong[:3:3], "north.yaml is left out")...)
	if got := filepath.Base(all[1].Kubeconfig); got != "north.conf" {
		t.Errorf("north is read from %s", got)
	}

	// Of a folder that cannot be read nothing has gone.
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	check("the folder is away", "east north", false, "read the folder of clusters: open "+dir, "there is a cluster north already", "there is a cluster east already")
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	check("it is back", "east north", true, append(wrong[:3:3], "north.yaml is left out")...)
}
