package main

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/informerd/informerd/cache/replica"
	"github.com/informerd/informerd/cmd/informerd/config"
)

// access is how one cluster is reached.
type access struct {
	replica.ClusterConfig
	// source is where it comes from, for people.
	source string
	// cluster is what the configuration says, and content differs when anything else does that
	// it was made from.
	cluster config.Cluster
	content string
	// digest is of the files as they were before it was made of them; "" if there were none.
	digest string
	// plugin gives credentials; nil if none does.
	plugin *execPlugin
	// direct is how the API server itself is reached, where the cluster is reached through a
	// replica; else nil.
	direct *replica.ClusterConfig
}

// same reports whether both lead the same way.
func (a *access) same(o *access) bool { return a.content == o.content && a.cluster.Equal(o.cluster) }

// unchanged reports whether the files that it was made of are as they were. False says
// nothing: how the cluster is reached may still be the same.
func (a *access) unchanged() bool {
	files, err := kubeconfigFiles(a.cluster.Kubeconfig)
	return err == nil && a.digest != "" && a.digest == digestOf(files)
}

// digestOf is another one where the files or what is in them is another; "" if there are none, or
// one cannot be read.
func digestOf(files []string) string {
	if len(files) == 0 {
		return ""
	}
	all := sha256.New()
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return ""
		}
		fmt.Fprintf(all, "%q %d\n", name, len(data))
		all.Write(data)
	}
	return string(all.Sum(nil))
}

// upstream is how the API server itself is reached: who asks, and what they may, is its word,
// and what no copy has.
func (a *access) upstream() replica.ClusterConfig {
	if a.direct != nil {
		return *a.direct
	}
	return a.ClusterConfig
}

// errNoKubeconfig says where a kubeconfig was looked for.
var errNoKubeconfig = errors.New("no kubeconfig: none is configured, KUBECONFIG is not set, ~/.kube/config does not exist, and this is no pod")

// loadAccess finds out how c is reached, from the first of: the kubeconfig it
// names, the files of KUBECONFIG, ~/.kube/config, the pod's service account. It
// reads files and asks nobody.
func loadAccess(c config.Cluster) (*access, error) {
	files, err := kubeconfigFiles(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if files == nil {
		return inCluster(c)
	}
	return fromFiles(c, files)
}

// kubeconfigFiles are the files to merge; nil means that there are none to be
// expected.
func kubeconfigFiles(configured string) ([]string, error) {
	if configured != "" {
		if _, err := os.Stat(configured); err != nil {
			return nil, fmt.Errorf("read kubeconfig: %w", err)
		}
		return []string{configured}, nil
	}
	if list := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		files := existing(filepath.SplitList(list))
		if files == nil {
			return nil, fmt.Errorf("read kubeconfig: KUBECONFIG is %s, which does not exist", list)
		}
		return files, nil
	}
	return existing([]string{clientcmd.RecommendedHomeFile}), nil
}

// existing are the files that are there; as kubectl does, the others are left
// out.
func existing(files []string) []string {
	var all []string
	for _, f := range files {
		if _, err := os.Stat(f); f != "" && err == nil {
			all = append(all, f)
		}
	}
	return all
}

func fromFiles(c config.Cluster, files []string) (*access, error) {
	source := strings.Join(files, string(filepath.ListSeparator))
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: files}
	digest := digestOf(files)
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", source, err)
	}
	name := cmp.Or(c.Context, raw.CurrentContext)
	switch _, ok := raw.Contexts[name]; {
	case name == "":
		return nil, fmt.Errorf("read kubeconfig %s: it has no current context: name one", source)
	case !ok:
		return nil, fmt.Errorf("read kubeconfig %s: it has no context %q%s", source, name, contexts(raw))
	}
	client := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, rules)
	rc, err := client.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s, context %q: %w", source, name, err)
	}
	content, err := clientcmd.Write(*raw)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", source, err)
	}
	a := newAccess(c, rc, raw.Contexts[name].Namespace)
	a.source, a.content, a.digest = fmt.Sprintf("%s, context %s", source, name), string(content), digest
	return a, nil
}

// contexts names the contexts there are, if that is not too much to read.
func contexts(raw *clientcmdapi.Config) string {
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	if len(names) == 0 || len(names) > 10 {
		return ""
	}
	slices.Sort(names)
	return ", but " + strings.Join(names, ", ")
}

func inCluster(c config.Cluster) (*access, error) {
	rc, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, errNoKubeconfig
	}
	if err != nil {
		return nil, fmt.Errorf("read service account: %w", err)
	}
	namespace, _ := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	a := newAccess(c, rc, strings.TrimSpace(string(namespace)))
	a.source = "service account"
	return a, nil
}

func newAccess(c config.Cluster, rc *rest.Config, namespace string) *access {
	rc.UserAgent = userAgent()
	// Everything is watched, deprecated versions too: their warnings, with
	// every request, would help nobody.
	rc.WarningHandler = rest.NoWarnings{}
	// Requests are bounded by the factory; a limiter would delay probes behind
	// them.
	rc.QPS = -1
	namespaces := c.Namespaces
	if len(namespaces) == 0 && namespace != "" {
		namespaces = []string{namespace}
	}
	a := &access{ClusterConfig: replica.ClusterConfig{REST: rc, Namespaces: namespaces}}
	if a.plugin = newExecPlugin(rc); a.plugin != nil {
		a.Wrap = a.plugin.wrap
	}
	return a
}
