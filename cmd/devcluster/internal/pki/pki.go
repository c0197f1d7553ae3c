// Package pki makes the keys and certificates of one devcluster and keeps them
// in a directory, so that a restart uses the same authority and kubeconfigs
// written earlier stay valid. It signs for ten years and cannot revoke: these
// clusters are thrown away, not administered.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const validity = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority stored as NAME.crt and NAME.key.
type Authority struct {
	Cert    *x509.Certificate
	CertPEM []byte
	key     crypto.Signer
	dir     string
}

// OpenAuthority reads the authority called name from dir, or creates it there.
func OpenAuthority(dir, name string) (*Authority, error) {
	pair, err := openPair(dir, name, func(key *ecdsa.PrivateKey) ([]byte, error) {
		tmpl, err := template(pkix.Name{CommonName: name})
		if err != nil {
			return nil, err
		}
		tmpl.IsCA = true
		tmpl.BasicConstraintsValid = true
		tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
		return x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	})
	if err != nil {
		return nil, fmt.Errorf("open authority %s: %w", name, err)
	}
	cert, err := parseCertificate(pair.CertPEM)
	if err != nil {
		return nil, fmt.Errorf("open authority %s: %w", name, err)
	}
	return &Authority{Cert: cert, CertPEM: pair.CertPEM, key: pair.key, dir: dir}, nil
}

// CertFile is the path of the authority's certificate.
func (a *Authority) CertFile() string { return certFile(a.dir, a.Cert.Subject.CommonName) }

// KeyFile is the path of the authority's private key.
func (a *Authority) KeyFile() string { return keyFile(a.dir, a.Cert.Subject.CommonName) }

// Pair is a certificate and its private key, both in PEM and in two files.
type Pair struct {
	CertPEM, KeyPEM   []byte
	CertFile, KeyFile string
	key               *ecdsa.PrivateKey
}

// Client returns the pair that authenticates user with the given groups; it is
// created at the first call and read from the directory afterwards.
func (a *Authority) Client(name, user string, groups ...string) (*Pair, error) {
	return a.pair(name, pkix.Name{CommonName: user, Organization: groups}, nil, x509.ExtKeyUsageClientAuth)
}

// Server returns the pair that serves the given DNS names and IP addresses.
func (a *Authority) Server(name string, hosts ...string) (*Pair, error) {
	return a.pair(name, pkix.Name{CommonName: name}, hosts, x509.ExtKeyUsageServerAuth)
}

func (a *Authority) pair(name string, subject pkix.Name, hosts []string, usage x509.ExtKeyUsage) (*Pair, error) {
	pair, err := openPair(a.dir, name, func(key *ecdsa.PrivateKey) ([]byte, error) {
		return a.sign(key, subject, hosts, usage)
	})
	if err != nil {
		return nil, fmt.Errorf("open certificate %s: %w", name, err)
	}
	return pair, nil
}

func (a *Authority) sign(key *ecdsa.PrivateKey, subject pkix.Name, hosts []string, usage x509.ExtKeyUsage) ([]byte, error) {
	tmpl, err := template(subject)
	if err != nil {
		return nil, err
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, host)
		}
	}
	return x509.CreateCertificate(rand.Reader, tmpl, a.Cert, key.Public(), a.key)
}

// OpenKey returns the path of a private key in dir, created at the first call.
// It signs service account tokens.
func OpenKey(dir, name string) (string, error) {
	path := keyFile(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	_, keyPEM, err := newKey()
	if err != nil {
		return "", err
	}
	return path, writeFile(path, keyPEM)
}

// openPair reads NAME.crt and NAME.key, or makes a key, has create certify it
// and writes both. The key is written first: a certificate without its key
// would be found, and fail, at the next start.
func openPair(dir, name string, create func(*ecdsa.PrivateKey) ([]byte, error)) (*Pair, error) {
	p := &Pair{CertFile: certFile(dir, name), KeyFile: keyFile(dir, name)}
	var err error
	p.CertPEM, err = os.ReadFile(p.CertFile)
	if err == nil {
		if p.KeyPEM, err = os.ReadFile(p.KeyFile); err != nil {
			return nil, err
		}
		p.key, err = parseKey(p.KeyPEM)
		return p, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if p.key, p.KeyPEM, err = newKey(); err != nil {
		return nil, err
	}
	der, err := create(p.key)
	if err != nil {
		return nil, err
	}
	p.CertPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeFile(p.KeyFile, p.KeyPEM); err != nil {
		return nil, err
	}
	return p, writeFile(p.CertFile, p.CertPEM)
}

func template(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("parse private key: no PEM block")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("parse certificate: no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func certFile(dir, name string) string { return filepath.Join(dir, name+".crt") }
func keyFile(dir, name string) string  { return filepath.Join(dir, name+".key") }
