package authn

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync/atomic"

	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// Authorities are the certificate authorities that name clients. They may change
// while they are used; the zero value has none, so that nobody is known by a
// certificate.
type Authorities struct {
	current atomic.Pointer[bundle]
}

type bundle struct {
	pem     []byte
	options x509.VerifyOptions
}

// Set replaces the authorities by those of a PEM bundle, and reports whether they are
// others. Of a bundle with an error the authorities stay as they are. An empty one is
// no error: there are none then.
func (a *Authorities) Set(bundlePEM []byte) (changed bool, err error) {
	if held := a.current.Load(); held != nil && bytes.Equal(held.pem, bundlePEM) {
		return false, nil
	}
	if len(bytes.TrimSpace(bundlePEM)) == 0 {
		return a.current.Swap(nil) != nil, nil
	}
	roots, err := parseBundle(bundlePEM)
	if err != nil {
		return false, err
	}
	options := x509request.DefaultVerifyOptions()
	options.Roots = roots
	a.current.Store(&bundle{pem: bytes.Clone(bundlePEM), options: options})
	return true, nil
}

// options are for the verification of one certificate; false while there are no
// authorities.
func (a *Authorities) options() (x509.VerifyOptions, bool) {
	if held := a.current.Load(); held != nil {
		return held.options, true
	}
	return x509.VerifyOptions{}, false
}

func parseBundle(rest []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the bundle: %w", n+1, err)
		}
		pool.AddCert(cert)
		n++
	}
	if n == 0 {
		return nil, errors.New("no certificate in PEM form is in it")
	}
	return pool, nil
}
