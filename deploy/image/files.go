package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is who informerd runs as: nobody that a node knows.
const User = 65532

const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:" + home + ":/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
	// home is where the snapshot is kept if nothing else is said.
	home = "/var/lib/informerd"
	// authorities are those that a kubeconfig means that names none.
	authorities = "/etc/ssl/certs/ca-certificates.crt"
	program     = "/usr/local/bin/informerd"
)

// file is one entry of a layer. Without data it is a folder.
type file struct {
	name  string
	mode  int64
	owner int
	data  []byte
}

// foundation is all that an image needs beside the program, if it is built on nothing.
func foundation() ([]file, error) {
	roots, err := rootCertificates()
	if err != nil {
		return nil, err
	}
	return []file{
		{"etc/", 0o755, 0, nil},
		{"etc/passwd", 0o644, 0, []byte(passwd)},
		{"etc/group", 0o644, 0, []byte(group)},
		{"etc/ssl/", 0o755, 0, nil},
		{"etc/ssl/certs/", 0o755, 0, nil},
		{authorities[1:], 0o644, 0, roots},
		{"usr/", 0o755, 0, nil},
		{"usr/local/", 0o755, 0, nil},
		{"usr/local/bin/", 0o755, 0, nil},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
	}, nil
}

// rootCertificates are those that Mozilla trusts, from a Go module, so that they do
// not depend on the machine. Authorities that are trusted with conditions only, which
// a file of certificates cannot say, are left out.
func rootCertificates() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, fmt.Errorf("read root certificates: %w", err)
		}
		fmt.Fprintf(&b, "# %s\n", cert.Subject)
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// layer packs files, all of the same age.
func layer(files []file, at time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if f.data == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
