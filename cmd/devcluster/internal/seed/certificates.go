package seed

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/informerd/informerd/cmd/devcluster/internal/pki"
)

// hosts are what the Ingresses serve by TLS: namespace, Secret, host.
var hosts = [][3]string{
	{"shop", "shop-tls", "shop.example.com"},
	{"payments", "payments-tls", "pay.example.com"},
	{"monitoring", "grafana-tls", "grafana.example.com"},
}

// certificates creates the TLS secrets that do not exist yet. They cannot be
// manifests: a private key does not belong into a repository.
func certificates(ctx context.Context, client kubernetes.Interface) error {
	dir, err := os.MkdirTemp("", "devcluster-certificates-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ca, err := pki.OpenAuthority(dir, "Example Issuing CA")
	if err != nil {
		return err
	}
	for _, h := range hosts {
		pair, err := ca.Server(h[2], h[2])
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Secrets(h[0]).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:        h[1],
				Annotations: map[string]string{"cert-manager.io/common-name": h[2], "cert-manager.io/issuer-name": "internal"},
			},
			Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{
				corev1.TLSCertKey:              pair.CertPEM,
				corev1.TLSPrivateKeyKey:        pair.KeyPEM,
				corev1.ServiceAccountRootCAKey: ca.CertPEM,
			},
		}, metav1.CreateOptions{FieldManager: "cert-manager-certificates-issuing"})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
