package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/informerd/informerd/cmd/informerd/config"
)

const (
	// absentFor is how long a kubeconfig may be away from its folder until its cluster is
	// removed: who writes a file anew may delete it first, and what is known of a removed
	// cluster is gone.
	absentFor = 10 * time.Second
	// emptyFor is the same where none is left: the folder may have lost what is mounted
	// there.
	emptyFor = time.Minute
)

// kubeconfigExtensions are those that files in a folder may have. Others are of editors and
// of those who keep what was before.
var kubeconfigExtensions = []string{"", ".yaml", ".yml", ".json", ".kubeconfig", ".conf", ".config"}

// folders finds the clusters of folders. One goroutine uses it.
type folders struct {
	absentFor, emptyFor time.Duration
	now                 func() time.Time
	begun               bool // it has looked before
	// last are the clusters of each folder, as they were found last.
	last map[string][]foundCluster
	// seen are the files as it saw them last. One that was not there, or not so, may still
	// be being written, under a name that it does not keep.
	seen map[string]fileState
}

// fileState tells whether a file is written to.
type fileState struct {
	size int64
	at   time.Time
}

// foundCluster is one of a folder.
type foundCluster struct {
	config.Cluster
	absent time.Time // since when its file is missing; zero while it is there
}

// foundClusters are what folders hold, and what is wrong with them.
type foundClusters struct {
	all   []config.Cluster
	wrong []error
	// readable: every folder could be read. whole: so could every file in them; nobody
	// knows of a cluster that is not among all that it is not to be.
	readable, whole bool
}

func newFolders() *folders {
	return &folders{absentFor: absentFor, emptyFor: emptyFor, now: time.Now, last: map[string][]foundCluster{}, seen: map[string]fileState{}}
}

// clusters are those of a configuration: the named ones, and those of its folders. What is
// wrong with a folder or a file in it concerns no other. A folder, or a file, that cannot be
// read has the clusters that it had. Who has a name keeps it until it goes.
func (f *folders) clusters(cfg *config.Config) foundClusters {
	found := foundClusters{all: slices.Clone(cfg.Clusters), readable: true, whole: true}
	taken := map[string]string{}
	for _, c := range found.all {
		taken[c.Name] = "the configuration"
	}
	last, seen := map[string][]foundCluster{}, map[string]fileState{}
	for _, folder := range cfg.Folders {
		clusters := f.read(folder, &found, seen)
		for _, c := range clusters {
			if by := taken[c.Name]; by != "" {
				found.wrong = append(found.wrong, fmt.Errorf("%s is left out: there is a cluster %s already, in %s", c.Kubeconfig, c.Name, by))
				continue
			}
			taken[c.Name] = c.Kubeconfig
			last[folder.Path] = append(last[folder.Path], c)
			found.all = append(found.all, c.Cluster)
		}
	}
	f.last, f.seen, f.begun = last, seen, true
	return found
}

// read finds the clusters of one folder, by name.
func (f *folders) read(folder config.Folder, all *foundClusters, seen map[string]fileState) (found []foundCluster) {
	before := f.last[folder.Path]
	entries, err := os.ReadDir(folder.Path)
	if err != nil {
		all.readable, all.whole = false, false
		all.wrong = append(all.wrong, fmt.Errorf("read the folder of clusters: %w", err))
		return before
	}
	for _, e := range entries {
		path := filepath.Join(folder.Path, e.Name())
		c, state, err := clusterOf(folder, path)
		known := slices.ContainsFunc(before, func(b foundCluster) bool { return b.Kubeconfig == path })
		if err != nil {
			all.wrong = append(all.wrong, fmt.Errorf("%s is left out: %w", path, err))
			if unreadable, ok := errors.AsType[*os.PathError](err); ok && unreadable != nil {
				all.whole = false
				for _, b := range before {
					if b.Kubeconfig == path {
						found = append(found, foundCluster{Cluster: b.Cluster})
					}
				}
			}
		}
		if c.Name == "" {
			continue
		}
		seen[path] = state
		if f.begun && !known && f.seen[path] != state {
			continue
		}
		found = append(found, foundCluster{Cluster: c})
	}
	grace := f.absentFor
	if len(found) == 0 {
		grace = f.emptyFor
	}
	for _, b := range before {
		if slices.ContainsFunc(found, func(c foundCluster) bool { return c.Kubeconfig == b.Kubeconfig }) {
			continue
		}
		if b.absent.IsZero() {
			b.absent = f.now()
		}
		renamed := slices.ContainsFunc(found, func(c foundCluster) bool { return c.Name == b.Name })
		if !renamed && f.now().Sub(b.absent) < grace {
			found = append(found, b)
		}
	}
	// Of two files of one name that counts which was there before.
	held := func(c foundCluster) int {
		if slices.ContainsFunc(before, func(b foundCluster) bool { return b.Kubeconfig == c.Kubeconfig }) {
			return 0
		}
		return 1
	}
	slices.SortFunc(found, func(a, b foundCluster) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(held(a), held(b)), cmp.Compare(a.Kubeconfig, b.Kubeconfig))
	})
	return found
}

// clusterOf is the cluster of a file in a folder. It has no name where there is none:
// folders, names that begin with a dot, among which are those that Kubernetes keeps
// the versions of a mounted Secret under, and names that end as no kubeconfig's does.
func clusterOf(folder config.Folder, path string) (config.Cluster, fileState, error) {
	base := filepath.Base(path)
	extension := filepath.Ext(base)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || !slices.Contains(kubeconfigExtensions, extension) {
		return config.Cluster{}, fileState{}, nil
	}
	info, err := os.Stat(path) // of what a link points to
	switch {
	case err != nil:
		return config.Cluster{}, fileState{}, err
	case info.IsDir():
		return config.Cluster{}, fileState{}, nil
	case !info.Mode().IsRegular():
		return config.Cluster{}, fileState{}, errors.New("it is no regular file")
	}
	name := strings.TrimSuffix(base, extension)
	if err := config.CheckClusterName(name); err != nil {
		return config.Cluster{}, fileState{}, fmt.Errorf("a cluster is called like its file: %w", err)
	}
	c := config.Cluster{Name: name, Kubeconfig: path, Namespaces: folder.Namespaces, Follows: true}
	return c, fileState{info.Size(), info.ModTime()}, nil
}

// clustersNow are those of a configuration at this moment, for commands that end. What is
// wrong with a folder is told.
func clustersNow(cfg *config.Config, warnings io.Writer) []config.Cluster {
	found := newFolders().clusters(cfg)
	for _, err := range found.wrong {
		fmt.Fprintf(warnings, "warning: %v\n", err)
	}
	return found.all
}
