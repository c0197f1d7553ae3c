package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/informerd/informerd/server/handlers/sinkconf"
)

const (
	secretPrefix = "whsec_"
	// minSecret is the shortest key that is not refused. Standard Webhooks asks for 24 to 64
	// bytes; services exist that give out 18.
	minSecret = 16
)

// signer signs as Standard Webhooks says, with every secret there is.
type signer struct{ files []*sinkconf.File }

func newSigner(m *sinkconf.Mistakes, paths []string) *signer {
	s := &signer{}
	for i, path := range paths {
		field := fmt.Sprintf("secretFiles[%d]", i)
		if path == "" {
			m.Add(field, "is empty: name a file with a secret")
			continue
		}
		f := m.File(field, path)
		s.files = append(s.files, f)
		if _, err := f.Content(); err != nil {
			continue // said already
		}
		if _, err := key(f); err != nil {
			m.Note(field, err)
		}
	}
	return s
}

// key is the secret that is in a file now.
func key(f *sinkconf.File) ([]byte, error) {
	content, err := f.Content()
	if err != nil {
		return nil, err
	}
	if encoded, ok := strings.CutPrefix(string(content), secretPrefix); ok {
		if content, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, fmt.Errorf("file %s has no base64 after %s", f.Path, secretPrefix)
		}
	}
	if len(content) < minSecret {
		return nil, fmt.Errorf("file %s has a secret of %d bytes, which can be guessed: 24 to 64, such as whsec_ and what openssl rand -base64 32 prints", f.Path, len(content))
	}
	return content, nil
}

// sign is the value of webhook-signature: one signature for each secret; "" without secrets.
func (s *signer) sign(id string, at time.Time, body []byte) (string, error) {
	signatures := make([]string, len(s.files))
	for i, f := range s.files {
		k, err := key(f)
		if err != nil {
			return "", err
		}
		signatures[i] = "v1," + signature(k, id, at, body)
	}
	return strings.Join(signatures, " "), nil
}

func signature(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
