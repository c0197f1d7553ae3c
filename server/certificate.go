package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// TLS names the files of a certificate. The zero value is plain HTTP.
type TLS struct {
	// CertFile and KeyFile are PEM files: the certificate with those that lead
	// to its root, and its private key.
	CertFile, KeyFile string
}

// certificatePoll is how often the files of a certificate are read.
const certificatePoll = 2 * time.Second

// certificate is the one to serve with. Its files are followed, so that one that
// was renewed takes effect without a restart; while they do not hold a valid
// pair, as between two writes, the last that was valid stays.
type certificate struct {
	files   TLS
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]

	// Of run alone.
	cert, key []byte // that current is made of
	complaint string // what was wrong when the files were read last
}

// loadCertificate reads the files, which must hold a valid pair.
func loadCertificate(files TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	if _, err := c.load(); err != nil {
		return nil, fmt.Errorf("load the certificate to serve with: %w", err)
	}
	return c, nil
}

// get is the GetCertificate of a tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// follow reads the files again and again until ctx ends or stop is called, which
// waits for the end.
func (c *certificate) follow(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.run(ctx) })
	return func() { cancel(); wg.Wait() }
}

func (c *certificate) run(ctx context.Context) {
	tick := time.NewTicker(certificatePoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := c.load()
		switch {
		case err != nil && err.Error() != c.complaint:
			c.complaint = err.Error()
			c.log.Warn("cannot use the changed certificate, serving with the one before", "path", c.files.CertFile, "err", err)
		case err == nil:
			c.complaint = ""
		}
		if changed {
			c.log.Info("certificate renewed", "path", c.files.CertFile)
		}
	}
}

// load takes over what is in the files, if that is another pair.
func (c *certificate) load() (changed bool, err error) {
	cert, err := os.ReadFile(c.files.CertFile)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(c.files.KeyFile)
	if err != nil {
		return false, err
	}
	if bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return false, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, fmt.Errorf("%s with %s: %w", c.files.CertFile, c.files.KeyFile, err)
	}
	c.current.Store(&pair)
	c.cert, c.key = cert, key
	return true, nil
}
