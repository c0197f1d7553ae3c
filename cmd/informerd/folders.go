package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cmd/informerd/config"
)

// absentFor is how long a kubeconfig may be away from its folder until its cluster is
// removed: who writes a file anew may delete it first, and what is known of a removed
// cluster is gone.
const absentFor = 10 * time.Second

// folders finds the clusters of folders. One goroutine uses it.
type folders struct {
	absentFor time.Duration
	now       func() time.Time
	// last are the clusters of each folder, as they were found last.
	last map[string][]foundCluster
}

// foundCluster is one of a folder.
type foundCluster struct {
	config.Cluster
	absent time.Time // since when its file is missing; zero while it is there
}

func newFolders() *folders {
	return &folders{absentFor: absentFor, now: time.Now, last: map[string][]foundCluster{}}
}

// clusters are those of a configuration: the named ones, and those of its folders. What is
// wrong with a folder or a file in it is said, and concerns no other. A folder that cannot
// be read has the clusters that it had; whole says that there is none such.
func (f *folders) clusters(cfg *config.Config) (all []config.Cluster, wrong []error, whole bool) {
	all, whole = slices.Clone(cfg.Clusters), true
	taken := map[string]string{}
	for _, c := range all {
		taken[c.Name] = "the configuration"
	}
	last := map[string][]foundCluster{}
	for _, folder := range cfg.Folders {
		found, errs, ok := f.read(folder)
		wrong, whole = append(wrong, errs...), whole && ok
		last[folder.Path] = found
		for _, c := range found {
			if by := taken[c.Name]; by != "" {
				wrong = append(wrong, fmt.Errorf("%s is left out: there is a cluster %s already, in %s", c.Kubeconfig, c.Name, by))
				continue
			}
			taken[c.Name] = c.Kubeconfig
			all = append(all, c.Cluster)
		}
	}
	f.last = last
	return all, wrong, whole
}

// read finds the clusters of one folder, by name.
func (f *folders) read(folder config.Folder) (found []foundCluster, wrong []error, ok bool) {
	before := f.last[folder.Path]
	entries, err := os.ReadDir(folder.Path)
	if err != nil {
		return before, []error{fmt.Errorf("read the folder of clusters: %w", err)}, false
	}
	for _, e := range entries {
		c, err := clusterOf(folder, e)
		if err != nil {
			wrong = append(wrong, err)
		}
		if c.Name != "" {
			found = append(found, foundCluster{Cluster: c})
		}
	}
	for _, b := range before {
		there := slices.ContainsFunc(found, func(c foundCluster) bool { return c.Kubeconfig == b.Kubeconfig })
		if there {
			continue
		}
		if b.absent.IsZero() {
			b.absent = f.now()
		}
		renamed := slices.ContainsFunc(found, func(c foundCluster) bool { return c.Name == b.Name })
		if !renamed && f.now().Sub(b.absent) < f.absentFor {
			found = append(found, b)
		}
	}
	// Of two files of one name always the same one counts.
	slices.SortFunc(found, func(a, b foundCluster) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kubeconfig, b.Kubeconfig))
	})
	return found, wrong, true
}

// clusterOf is the cluster of a file in a folder. It has no name where there is none:
// folders, and names that begin with a dot, among which are those that Kubernetes keeps
// the versions of a mounted Secret under.
func clusterOf(folder config.Folder, e os.DirEntry) (config.Cluster, error) {
	path := filepath.Join(folder.Path, e.Name())
	if strings.HasPrefix(e.Name(), ".") {
		return config.Cluster{}, nil
	}
	info, err := os.Stat(path) // of what a link points to
	switch {
	case err != nil:
		return config.Cluster{}, fmt.Errorf("%s is left out: %w", path, err)
	case info.IsDir():
		return config.Cluster{}, nil
	}
	name := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name()))
	if err := config.CheckClusterName(name); err != nil {
		return config.Cluster{}, fmt.Errorf("%s is left out: a cluster is called like its file: %w", path, err)
	}
	return config.Cluster{Name: name, Kubeconfig: path, Namespaces: folder.Namespaces, Follows: true}, nil
}

// clustersNow are those of a configuration at this moment, for commands that end. What is
// wrong with a folder is told.
func clustersNow(cfg *config.Config, warnings io.Writer) []config.Cluster {
	all, wrong, _ := newFolders().clusters(cfg)
	for _, err := range wrong {
		fmt.Fprintf(warnings, "warning: %v\n", err)
	}
	return all
}
