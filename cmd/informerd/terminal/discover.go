package terminal

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

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

// findPod is a pod of a Service that is ready, its port, and what is spoken there.
func findPod(ctx context.Context, kube *rest.Config, namespace, service string) (client.Pod, string, error) {
	found, err := endpointSlices(ctx, kube, namespace, service)
	if err != nil {
		return client.Pod{}, "", err
	}
	for _, s := range found {
		port, scheme, ok := portOf(s.Ports)
		for _, e := range s.Endpoints {
			pod := e.TargetRef
			if ok && pod != nil && pod.Kind == "Pod" && pod.Namespace == namespace && ptr.Deref(e.Conditions.Ready, true) {
				return client.Pod{Namespace: pod.Namespace, Name: pod.Name, Port: port}, scheme, nil
			}
		}
	}
	return client.Pod{}, "", fmt.Errorf("no pod of a Service %s/%s is ready", namespace, service)
}

// endpointSlices asks the API server for those of a Service.
func endpointSlices(ctx context.Context, config *rest.Config, namespace, service string) ([]discoveryv1.EndpointSlice, error) {
	asking, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer asking.CloseIdleConnections()
	// The credentials are for this server, and would be shown to the next one, too.
	asking.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	kube, err := kubernetes.NewForConfigAndClient(config, asking)
	if err != nil {
		return nil, err
	}
	list, err := kube.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return nil, fmt.Errorf("ask the API server: %w", err)
	}
	return list.Items, nil
}

// portOf is the port for HTTPS, or else the only one.
func portOf(ports []discoveryv1.EndpointPort) (port int, scheme string, ok bool) {
	i := slices.IndexFunc(ports, func(p discoveryv1.EndpointPort) bool {
		return ptr.Deref(p.Name, "") == "https" || ptr.Deref(p.AppProtocol, "") == "https"
	})
	switch {
	case i >= 0:
		return int(ptr.Deref(ports[i].Port, 0)), "https", true
	case len(ports) == 1:
		return int(ptr.Deref(ports[0].Port, 0)), "http", true
	}
	return 0, "", false
}
