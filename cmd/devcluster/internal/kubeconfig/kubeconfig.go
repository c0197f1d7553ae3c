// Package kubeconfig writes the kubeconfig files of a devcluster. They are self
// contained: certificates are embedded, so a file can be copied elsewhere.
package kubeconfig

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const cluster = "devcluster"

// Config is who connects where.
type Config struct {
	Server    string // https://host:port
	CA        []byte // PEM
	User      string
	Cert, Key []byte // PEM, the user's client certificate
	Token     string // instead of a certificate
	Namespace string // of the context; empty means default
}

// Write replaces the file at path, readable by its owner only.
func Write(path string, c Config) error {
	name := c.User + "@" + cluster
	config := clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: c.Server, CertificateAuthorityData: c.CA},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			c.User: {ClientCertificateData: c.Cert, ClientKeyData: c.Key, Token: c.Token},
		},
		Contexts: map[string]*clientcmdapi.Context{
			name: {Cluster: cluster, AuthInfo: c.User, Namespace: c.Namespace},
		},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", c.User, err)
	}
	return nil
}
