package sinkconf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
)

// TLS is how a sink is known from others, and what is shown to it. Its files are read again
// when they change.
type TLS struct {
	ca, cert, key *File
	serverName    string
	insecure      bool
}

// TLSConfig names what TLS needs; all may be empty.
type TLSConfig struct {
	CAFile, CertFile, KeyFile string
	ServerName                string
	InsecureSkipVerify        bool
}

// Given reports whether anything is.
func (c TLSConfig) Given() bool { return c != TLSConfig{} }

// TLS reads the files that c names, and notes what is wrong with them.
func (m *Mistakes) TLS(c TLSConfig) *TLS {
	t := &TLS{serverName: c.ServerName, insecure: c.InsecureSkipVerify}
	before := len(*m)
	switch {
	case c.CertFile == "" && c.KeyFile != "":
		m.Add("certFile", "is missing, and keyFile is given: give both, or none to show no certificate")
	case c.CertFile != "" && c.KeyFile == "":
		m.Add("keyFile", "is missing, and certFile is given: give both, or none to show no certificate")
	}
	if c.InsecureSkipVerify && c.CAFile != "" {
		m.Add("insecureSkipVerify", "no certificate would be checked, and caFile says by what to check them: give one of the two")
	}
	t.ca = m.File("caFile", c.CAFile)
	t.cert = m.File("certFile", c.CertFile)
	t.key = m.File("keyFile", c.KeyFile)
	if len(*m) > before {
		return t
	}
	if _, err := t.roots(); err != nil {
		m.Note("caFile", err)
	}
	if _, err := t.certificate(); err != nil {
		m.Note("certFile", err)
	}
	return t
}

// File opens the file of a field; nil if there is none.
func (m *Mistakes) File(field, path string) *File {
	if path == "" {
		return nil
	}
	f, err := Open(path)
	if err != nil {
		m.Note(field, err)
	}
	return f
}

// Config is the configuration of TLS as the files are now. Connections made with an older
// one go on with it.
func (t *TLS) Config() (*tls.Config, error) {
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	if _, err := t.certificate(); err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            roots,
		ServerName:         t.serverName,
		InsecureSkipVerify: t.insecure, //nolint:gosec // the configuration says so
	}
	if t.cert != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.certificate() }
	}
	return c, nil
}

// State stands for the content of the files: it is another one when they have changed.
func (t *TLS) State() ([]byte, error) {
	var all [][]byte
	for _, f := range []*File{t.ca, t.cert, t.key} {
		if f == nil {
			continue
		}
		content, err := f.Content()
		if err != nil {
			return nil, err
		}
		all = append(all, content)
	}
	return bytes.Join(all, []byte{0}), nil
}

func (t *TLS) roots() (*x509.CertPool, error) {
	if t.ca == nil {
		return nil, nil // the system's
	}
	pem, err := t.ca.Content()
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("file %s has no certificate in PEM", t.ca.Path)
	}
	return pool, nil
}

func (t *TLS) certificate() (*tls.Certificate, error) {
	if t.cert == nil || t.key == nil {
		return nil, nil
	}
	cert, err := t.cert.Content()
	if err != nil {
		return nil, err
	}
	key, err := t.key.Content()
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("file %s and file %s are no certificate with its key: %w", t.cert.Path, t.key.Path, err)
	}
	return &pair, nil
}

// TLSAdvice says what to do about an error of TLS; "" if err is none.
func TLSAdvice(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by an authority that is not known: name that authority's certificate in caFile"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("its certificate is for other names than %s: use one of its names, or give it as serverName where that can be set", e.Host)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet: renew it, and compare the clocks"
		}
		return "its certificate is not good for a server: " + e.Error()
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "it does not speak TLS at this port: use the port that does"
	}
	// The type of an alert is not exported, but what wraps it is.
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return "it ended the handshake (" + e.Err.Error() + "): it may ask for a client's certificate, which certFile and keyFile give"
	}
	return ""
}
