package terminal

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// serverEnv names the variable that says where informerd is.
const serverEnv = "INFORMERD"

// defaultServer is where informerd listens unless it is told otherwise.
const defaultServer = "http://127.0.0.1:8080"

// connection are the flags that say which informerd is asked, and by whom.
type connection struct {
	server     string
	config     rest.Config
	kubeconfig string
	context    string
	service    string
}

func (c *connection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.server, "server", "", "`URL` of the informerd to ask (default: $INFORMERD, then "+defaultServer+", then the Service found through the kubeconfig)")
	f.StringVar(&c.config.BearerToken, "token", "", "bearer `token` to show; others on this machine can read it among the arguments, better is --token-file")
	f.StringVar(&c.config.BearerTokenFile, "token-file", "", "`file` with the bearer token to show")
	f.StringVar(&c.config.CAFile, "certificate-authority", "", "`file` with the authorities that the server's certificate must be from")
	f.StringVar(&c.config.CertFile, "client-certificate", "", "`file` with the certificate to show")
	f.StringVar(&c.config.KeyFile, "client-key", "", "`file` with the key of the certificate to show")
	f.StringVar(&c.config.ServerName, "tls-server-name", "", "`name` that the server's certificate must have, if it is not that of the address")
	f.BoolVar(&c.config.Insecure, "insecure-skip-tls-verify", false, "believe any certificate: who is on the way can then read everything, tokens too")
	f.StringVar(&c.config.Impersonate.UserName, "as", "", "`user` to ask for, if you may impersonate them")
	f.StringSliceVar(&c.config.Impersonate.Groups, "as-group", nil, "`group` to ask for; may be repeated")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig `file`, for the default namespace and to find informerd (default: $KUBECONFIG, ~/.kube/config)")
	f.StringVar(&c.context, "context", "", "`name` of the kubeconfig's context, for the same")
	f.StringVar(&c.service, "service", defaultService, "`NAMESPACE/NAME` of informerd's Service, where it is found through the kubeconfig")
	for _, file := range []string{"token-file", "certificate-authority", "client-certificate", "client-key", "kubeconfig"} {
		_ = cmd.MarkFlagFilename(file)
	}
	_ = cmd.RegisterFlagCompletionFunc("context", c.completeContexts)
}

// connect is a client of the first of: --server, INFORMERD, the cluster of a context that
// was named, this machine, the cluster of the current context.
func (c *connection) connect(ctx context.Context, warn func(string)) (*client.Client, error) {
	if err := c.checkCertificate(); err != nil {
		return nil, err
	}
	switch env := os.Getenv(serverEnv); {
	case c.server != "":
		return c.dial(c.server, "--server", warn)
	case env != "":
		return c.dial(env, serverEnv, warn)
	case c.context != "" || c.kubeconfig != "":
		return c.inCluster(ctx, warn)
	case !c.showsCredentials() && answers(defaultServer):
		return c.dial(defaultServer, "the default", warn)
	}
	found, err := c.inCluster(ctx, warn)
	switch {
	case !errors.Is(err, errNoContext):
		return found, err
	case c.showsCredentials():
		return nil, usagef("say with --server or %s whom the credentials are for: anybody on this machine may listen at %s", serverEnv, defaultServer)
	}
	return c.dial(defaultServer, "the default", warn)
}

// showsCredentials reports whether a flag names some. They go to who was named, and never
// to whoever happens to listen on this machine.
func (c *connection) showsCredentials() bool {
	return c.config.BearerToken != "" || c.config.BearerTokenFile != "" || c.config.CertFile != ""
}

func (c *connection) dial(server, source string, warn func(string)) (*client.Client, error) {
	config := rest.CopyConfig(&c.config)
	config.Host = server
	found, err := client.New(config, source, warn)
	if err != nil {
		return nil, usagef("%s: %w", source, err)
	}
	return found, nil
}

// checkCertificate reads the certificate to show: client-go would go on without one that
// cannot be read, as somebody else.
func (c *connection) checkCertificate() error {
	if c.config.CertFile == "" && c.config.KeyFile == "" {
		return nil
	}
	if c.config.CertFile == "" || c.config.KeyFile == "" {
		return usagef("--client-certificate and --client-key belong together")
	}
	if _, err := tls.LoadX509KeyPair(c.config.CertFile, c.config.KeyFile); err != nil {
		return usagef("--client-certificate, --client-key: %w", err)
	}
	return nil
}

// answers tells whether anything listens at server, which is on this machine.
func answers(server string) bool {
	conn, err := net.DialTimeout("tcp", server[len("http://"):], time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// currentNamespace is that of the kubeconfig's context. ok is false where there is none.
func (c *connection) currentNamespace() (namespace, from string, ok bool, err error) {
	raw, name, err := c.loadContext()
	switch {
	case errors.Is(err, errNoContext):
		return "", "", false, nil
	case err != nil:
		return "", "", false, err
	}
	return cmp.Or(raw.Contexts[name].Namespace, "default"), fmt.Sprintf("of context %q", name), true, nil
}
