package kubeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := Write(path, Config{
		Server:    "https://127.0.0.1:6443",
		CA:        []byte("ca"),
		User:      "namespaced",
		Cert:      []byte("cert"),
		Key:       []byte("key"),
		Namespace: "team-a",
	})
	if err != nil {
		t.Fatal(err)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || string(config.CAData) != "ca" ||
		string(config.CertData) != "cert" || string(config.KeyData) != "key" {
		t.Errorf("config read back: %v", config)
	}
	if namespace, _, err := loader.Namespace(); err != nil || namespace != "team-a" {
		t.Errorf("Namespace() = %q, %v, want team-a", namespace, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, want 0600: the file holds a private key", info.Mode())
	}
}
