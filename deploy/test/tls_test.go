package test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// cluster answers the chart's look-ups.
type cluster struct{ client dynamic.Interface }

func (c cluster) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: map[string]string{"Secret": "secrets"}[kind]}), true, nil
}

// withObjects is a cluster that has objects.
func withObjects(t *testing.T, objs ...runtime.Object) cluster {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{{Version: "v1", Resource: "secrets"}: "SecretList"}
	var all []runtime.Object
	for _, obj := range objs {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &unstructured.Unstructured{Object: content})
	}
	return cluster{fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)}
}

func secretOf(t *testing.T, r install, values string) *corev1.Secret {
	t.Helper()
	return get[*corev1.Secret](t, r.objects(t, values), "Secret/informerd/informerd-tls")
}

// TestSelfSigned: the certificate that the chart makes is good for whoever trusts the
// authority beside it, under every name that informerd has.
func TestSelfSigned(t *testing.T) {
	s := secretOf(t, installed, "tls: {dnsNames: [x.example.com], ipAddresses: [10.0.0.1]}")
	if s.Type != corev1.SecretTypeTLS || len(s.Data) != 3 {
		t.Fatalf("secret has type %s and %d entries", s.Type, len(s.Data))
	}
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.Data["ca.crt"]) {
		t.Fatal("ca.crt holds no certificate")
	}
	for _, name := range []string{"informerd.informerd.svc", "informerd.informerd", "informerd.informerd.svc.cluster.local", "localhost", "x.example.com", "10.0.0.1", "127.0.0.1"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "y.example.com"}); err == nil {
		t.Error("the certificate is good for any name")
	}
	if block, _ := pem.Decode(s.Data["tls.crt"]); block == nil || cert.IsCA {
		t.Error("tls.crt is not one certificate of a server")
	}
}

// TestSelfSignedIsKept: an upgrade changes a certificate only if it is to be for other
// names.
func TestSelfSignedIsKept(t *testing.T) {
	r := installed
	r.clients = withObjects(t)
	first := secretOf(t, r, "")
	r.clients = withObjects(t, first)
	again := secretOf(t, r, "replicas: 2")
	if !bytes.Equal(first.Data["tls.crt"], again.Data["tls.crt"]) || !bytes.Equal(first.Data["tls.key"], again.Data["tls.key"]) ||
		!bytes.Equal(first.Data["ca.crt"], again.Data["ca.crt"]) {
		t.Error("an upgrade has made another certificate")
	}
	other := secretOf(t, r, "tls: {dnsNames: [x.example.com]}")
	if bytes.Equal(first.Data["tls.crt"], other.Data["tls.crt"]) {
		t.Error("the certificate lacks a name that was added")
	}
	theirs := first.DeepCopy()
	theirs.Data = map[string][]byte{"other": nil}
	r.clients = withObjects(t, theirs)
	if made := secretOf(t, r, ""); len(made.Data["tls.crt"]) == 0 {
		t.Error("a Secret without a certificate was kept")
	}
}
