package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// inCluster finds informerd's Service through the kubeconfig, and asks it through a tunnel
// into one of its pods, with what the kubeconfig shows the API server. Only the Service of
// the one name is looked for: whoever may make Services elsewhere would else be shown that.
func (c *connection) inCluster(ctx context.Context, warn func(string)) (*client.Client, error) {
	raw, name, err := c.loadContext()
	if err != nil {
		return nil, err
	}
	kube, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, &clientcmd.ConfigOverrides{}, c.rules()).ClientConfig()
	if err != nil {
		return nil, usagef("read kubeconfig, context %q: %w", name, err)
	}
	namespace, service, ok := strings.Cut(c.service, "/")
	if !ok || namespace == "" || service == "" {
		return nil, usagef("--service: %q is no Service: write NAMESPACE/NAME", c.service)
	}
	pod, scheme, err := findPod(ctx, kube, namespace, service)
	if err != nil {
		return nil, c.notFoundIn(name, err)
	}
	tunnel, err := client.Open(kube, pod)
	if err != nil {
		return nil, c.notFoundIn(name, err)
	}
	config := c.credentials(kube)
	config.Host = scheme + "://" + service + "." + namespace + ".svc"
	config.Dial = tunnel.Dial
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // the tunnel is the way
	found, err := client.New(config, fmt.Sprintf("Service %s, context %q", c.service, name), warn)
	if err != nil {
		tunnel.Close()
		return nil, &outcome{ExitNoAnswer, err}
	}
	found.Closed = tunnel.Close
	return found, nil
}

// notFoundIn says where informerd was looked for, and what else can be done.
func (c *connection) notFoundIn(context string, err error) error {
	return &outcome{ExitNoAnswer, fmt.Errorf("no informerd found: %s is not set, nothing listens at %s, and in context %q: %w\n"+
		"Name it with --server, or its Service with --service NAMESPACE/NAME", serverEnv, defaultServer, context, err)}
}

// credentials are those of the kubeconfig, but for what flags name.
func (c *connection) credentials(kube *rest.Config) *rest.Config {
	config := rest.CopyConfig(kube)
	// The authorities of the API server are not informerd's. The tunnel ends in the pod that
	// the API server named, so that there is nobody else to be taken for it.
	config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = nil, c.config.CAFile
	config.TLSClientConfig.ServerName = c.config.ServerName
	config.TLSClientConfig.Insecure = c.config.Insecure || c.config.CAFile == ""
	if c.config.BearerToken != "" || c.config.BearerTokenFile != "" {
		config.BearerToken, config.BearerTokenFile = c.config.BearerToken, c.config.BearerTokenFile
		config.ExecProvider, config.AuthProvider = nil, nil
		config.Username, config.Password = "", ""
	}
	if c.config.CertFile != "" {
		config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData = nil, nil
		config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile = c.config.CertFile, c.config.KeyFile
	}
	if c.config.Impersonate.UserName != "" {
		config.Impersonate = c.config.Impersonate
	}
	return config
}

// endpointSlices are what is read of them.
type endpointSlices struct {
	Items []struct {
		Ports     []endpointPort
		Endpoints []struct {
			Conditions struct{ Ready *bool }
			TargetRef  struct{ Kind, Namespace, Name string }
		}
	}
}

type endpointPort struct {
	Name, AppProtocol string
	Port              int
}

// findPod is a pod of a Service that is ready, its port, and what is spoken there.
func findPod(ctx context.Context, kube *rest.Config, namespace, service string) (client.Pod, string, error) {
	var slicesOf endpointSlices
	path := "/apis/discovery.k8s.io/v1/namespaces/" + url.PathEscape(namespace) + "/endpointslices?labelSelector=" +
		url.QueryEscape("kubernetes.io/service-name="+service)
	if err := getKube(ctx, kube, path, &slicesOf); err != nil {
		return client.Pod{}, "", err
	}
	for _, s := range slicesOf.Items {
		port, scheme, ok := portOf(s.Ports)
		for _, e := range s.Endpoints {
			if ok && e.TargetRef.Kind == "Pod" && e.TargetRef.Namespace == namespace && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return client.Pod{Namespace: e.TargetRef.Namespace, Name: e.TargetRef.Name, Port: port}, scheme, nil
			}
		}
	}
	return client.Pod{}, "", fmt.Errorf("no pod of a Service %s/%s is ready", namespace, service)
}

// portOf is the port for HTTPS, or else the only one.
func portOf(ports []endpointPort) (port int, scheme string, ok bool) {
	i := slices.IndexFunc(ports, func(p endpointPort) bool { return p.Name == "https" || p.AppProtocol == "https" })
	switch {
	case i >= 0:
		return ports[i].Port, "https", true
	case len(ports) == 1:
		return ports[0].Port, "http", true
	}
	return 0, "", false
}

// getKube asks the API server.
func getKube(ctx context.Context, kube *rest.Config, path string, into any) error {
	asking, err := rest.HTTPClientFor(kube)
	if err != nil {
		return err
	}
	defer asking.CloseIdleConnections()
	// The credentials are for this server, and would be shown to the next one, too.
	asking.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	base, _, err := rest.DefaultServerUrlFor(kube)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+path, nil)
	if err != nil {
		return err
	}
	resp, err := asking.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var status metav1.Status
		if json.Unmarshal(body, &status) == nil && status.Message != "" {
			return fmt.Errorf("the API server says: %s", status.Message)
		}
		return fmt.Errorf("the API server answers %s", resp.Status)
	}
	return json.Unmarshal(body, into)
}
