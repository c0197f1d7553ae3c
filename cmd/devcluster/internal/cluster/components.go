package cluster

import (
	"context"
	"crypto/tls"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cmd/devcluster/internal/process"
)

// The components, by the names of their programs.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// Components are the programs in the order in which they start. There can be
// several API servers, see componentNames.
var Components = []string{etcd, apiServer, controllerManager, scheduler, kwok}

const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1" // of service kubernetes: the first of the range
)

// Ports beside those of the components.
const (
	etcdPeer     = "etcd-peer" // nobody connects to it
	balancerPort = "balancer"
	proxyPort    = "proxy"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// stages tell kwok what becomes of nodes and pods.
//
//go:embed kwok-stages.yaml
var stages []byte

// writeConfigs writes the configuration files that components are given.
func (c *Cluster) writeConfigs() error {
	if err := os.WriteFile(c.path("audit-policy.yaml"), auditPolicy, 0o600); err != nil {
		return err
	}
	return os.WriteFile(c.path("kwok-stages.yaml"), stages, 0o600)
}

// args is the command line of a component.
func (c *Cluster) args(component string) []string {
	switch applet(component) {
	case etcd:
		return append(c.etcdArgs(), c.opts.EtcdArgs...)
	case apiServer:
		return append(c.apiServerArgs(component), c.opts.APIServerArgs...)
	case controllerManager:
		return append(c.controllerManagerArgs(), c.opts.ControllerManagerArgs...)
	case scheduler:
		return c.schedulerArgs()
	case kwok:
		return c.kwokArgs()
	}
	panic("no such component: " + component)
}

func (c *Cluster) etcdArgs() []string {
	client, peer := c.url("http", etcd), c.url("http", etcdPeer)
	return []string{
		"--name=default",
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		// The data survives the end of the process, not that of the machine.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--auto-compaction-retention=0", // the API server compacts
		// Bookmarks of quiet resources depend on it; as kubeadm sets it.
		"--watch-progress-notify-interval=5s",
		"--log-level=warn",
	}
}

func (c *Cluster) apiServerArgs(name string) []string {
	creds := c.creds
	return []string{
		"--etcd-servers=" + c.url("http", etcd),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports[name]),
		// Endpoints cannot hold loopback addresses, so service kubernetes has none.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,

		"--tls-cert-file=" + creds.server.CertFile,
		"--tls-private-key-file=" + creds.server.KeyFile,
		"--client-ca-file=" + creds.ca.CertFile(),
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-signing-key-file=" + creds.serviceAccountKey,
		"--service-account-key-file=" + creds.serviceAccountKey,

		// Aggregated APIs. Routing to endpoints stays off: only without it does
		// the aggregator follow a Service of type ExternalName, which is the one
		// way to reach a server on loopback, as endpoints cannot be loopback.
		"--proxy-client-cert-file=" + creds.proxyClient.CertFile,
		"--proxy-client-key-file=" + creds.proxyClient.KeyFile,
		"--requestheader-client-ca-file=" + creds.frontProxy.CertFile(),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",

		// New nodes would be tainted until the controller manager sees that
		// they are ready; simulated nodes are ready from the start.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--allow-privileged=true",

		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.auditLog(),
		"--audit-log-format=json",
		"--audit-log-mode=blocking", // a request is in the log when it is answered
		"--audit-log-maxsize=0",     // never rotated

		// Bulk loads and benchmarks must not be throttled.
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1000",
		"--goaway-chance=0",

		// A stopping server ends its watches at once.
		"--shutdown-delay-duration=0s",
		"--shutdown-watch-termination-grace-period=1s",
	}
}

func (c *Cluster) controllerManagerArgs() []string {
	creds := c.creds
	return append(c.clientArgs(controllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+creds.serviceAccountKey,
		"--root-ca-file="+creds.ca.CertFile(),
		"--cluster-signing-cert-file="+creds.ca.CertFile(),
		"--cluster-signing-key-file="+creds.ca.KeyFile(),
		// Simulated nodes send no heartbeats and must stay ready nevertheless.
		"--node-monitor-grace-period=87600h",
		// It would annotate all nodes again whenever their number grows.
		"--controllers=*,-ttl-controller",
		// There are no metrics to scale by; each attempt is an event.
		"--horizontal-pod-autoscaler-sync-period=1h",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

func (c *Cluster) schedulerArgs() []string {
	return append(c.clientArgs(scheduler), "--kube-api-qps=500", "--kube-api-burst=1000")
}

// clientArgs are the flags that controller manager and scheduler share.
func (c *Cluster) clientArgs(component string) []string {
	config := kubeconfigFile(c.opts.Dir, component)
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports[component]),
		"--leader-elect=false",
	}
}

func (c *Cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + kubeconfigFile(c.opts.Dir, kwok),
		"--config=" + c.path("kwok-stages.yaml"),
		"--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--cidr=10.244.0.1/16",
		"--server-address=127.0.0.1:" + fmt.Sprint(c.ports[kwok]),
		// Without leases nodes are quiet, and a restarted kwok need not wait
		// for those of its predecessor to expire.
		"--node-lease-duration-seconds=0",
	}
}

// env is the environment of the components: that of devcluster without what
// would send their traffic elsewhere.
func (c *Cluster) env() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		switch strings.ToUpper(name) {
		case "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "KUBECONFIG":
			return true
		}
		return strings.HasPrefix(name, "ETCD_") || strings.HasPrefix(name, "KWOK_")
	})
	return append(env, "KWOK_WORKDIR="+c.path("kwok"))
}

// newProcess prepares a component. It is not started yet.
func (c *Cluster) newProcess(component string) (*process.Process, error) {
	client, err := c.probeClient()
	if err != nil {
		return nil, err
	}
	url := c.probeURL(component)
	return process.New(process.Options{
		Name: component,
		Path: c.program(component),
		Args: append([]string{"component", applet(component)}, c.args(component)...),
		Env:  c.env(),
		Log:  c.logFile(component),
		Ready: func(ctx context.Context) error {
			return probe(ctx, client, url)
		},
		StartTimeout: c.opts.StartTimeout,
		StopTimeout:  5 * time.Second,
		Died:         func(err error) { c.died <- death{component, err} },
		Changed:      c.changed,
	}), nil
}

// probeURL answers 200 when the component does its work.
func (c *Cluster) probeURL(component string) string {
	switch applet(component) {
	case etcd, apiServer:
		return c.componentURL(component) + "/readyz"
	default:
		return c.componentURL(component) + "/healthz"
	}
}

func (c *Cluster) componentURL(component string) string {
	if component == etcd || component == kwok {
		return c.url("http", component)
	}
	return c.url("https", component)
}

// probeClient trusts any server: it talks to children on loopback, and some of
// them sign their certificates themselves.
func (c *Cluster) probeClient() (*http.Client, error) {
	config, err := rest.TLSConfigFor(c.creds.restConfig(c.server()))
	if err != nil {
		return nil, err
	}
	config.RootCAs = nil
	config.InsecureSkipVerify = true
	config.MinVersion = tls.VersionTLS12
	return &http.Client{
		Timeout: 5 * time.Second,
		// A connection kept from before a restart would fail the first probe.
		Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true},
	}, nil
}

func probe(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

func (c *Cluster) url(scheme, name string) string {
	return scheme + "://" + c.address(name)
}

func (c *Cluster) address(name string) string { return fmt.Sprintf("127.0.0.1:%d", c.ports[name]) }

// server is where clients find the API server.
func (c *Cluster) server() string {
	if c.balances() {
		return c.url("https", balancerPort)
	}
	return c.url("https", apiServer)
}

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.opts.Dir}, elem...)...)
}

func (c *Cluster) auditLog() string { return c.path("audit.log") }

func (c *Cluster) logFile(component string) string { return c.path("logs", component+".log") }
