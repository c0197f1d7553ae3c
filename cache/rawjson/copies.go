package rawjson

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"regexp"
)

// SecretCopies, among what is dropped, stands for the annotations that hold a Secret once
// more, or its data: those who apply objects keep what they applied, under names of their
// own, as JSON, as YAML, or either of them compressed and encoded. No path says which
// they are; what they hold does, see holdsSecret.
var SecretCopies = mustPath("metadata.annotations[*]")

const (
	// maxLayers is how often what holds a Secret may be encoded, compressed or quoted.
	maxLayers = 4
	// maxUnpacked is up to where an annotation is unpacked. All of an object have 256 KB
	// together; who needs more than this has something to hide.
	maxUnpacked = 8 << 20
)

var (
	// secretInFlow is a member of an object in JSON, or in YAML written like it, that is a
	// Secret's: its data, or its kind; in a string, too, where quotes are escaped. The last
	// is a path into the data, of a patch.
	secretInFlow = regexp.MustCompile(`[{,](?:\s|\\+[nrt])*(?:\\*["'])?(?:(?:data|stringData)(?:\\*["'])?\s*:|kind(?:\\*["'])?\s*:\s*(?:\\*["'])?Secret\b)` +
		`|["']/(?:data|stringData)(?:/|\\*["'])`)
	// secretInBlock is the same in YAML with a line for each member.
	secretInBlock = regexp.MustCompile(`(?m)^(?:[ \t]*[-+])*[ \t]*["']?(?:(?:data|stringData)["']?[ \t]*:(?:[ \t]|\r?$)|kind["']?[ \t]*:[ \t]*["']?Secret\b)`)
)

// holdsSecret reports whether the text of an annotation seems to hold a Secret, or its
// data. It takes for one what cannot be unpacked, rather than the other way round: an
// annotation that is missing does less harm.
func holdsSecret(text []byte) bool { return secretWithin(text, maxLayers) }

func secretWithin(text []byte, layers int) bool {
	if isGzip(text) {
		plain, err := gunzip(text)
		return err != nil || layers == 0 || secretWithin(plain, layers-1)
	}
	text = bytes.TrimSpace(text)
	if bytes.Contains(text, []byte("data")) || bytes.Contains(text, []byte("Data")) || bytes.Contains(text, []byte("Secret")) {
		if secretInBlock.Match(text) || bytes.ContainsAny(text, "{[") && secretInFlow.Match(text) {
			return true
		}
	}
	if layers == 0 {
		return false
	}
	plain, ok := decodeBase64(text)
	return ok && secretWithin(plain, layers-1)
}

func isGzip(b []byte) bool { return len(b) > 2 && b[0] == 0x1f && b[1] == 0x8b }

func gunzip(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxUnpacked+1))
	if err == nil && len(plain) > maxUnpacked {
		err = io.ErrShortBuffer
	}
	return plain, err
}

// shortest is {data: {}} as base64.
const shortest = 16

// decodeBase64 reads both alphabets, in lines or not, and with padding or without.
func decodeBase64(text []byte) ([]byte, bool) {
	if len(text) < shortest {
		return nil, false
	}
	plain := make([]byte, 0, len(text))
	for _, c := range bytes.TrimRight(text, "=") {
		switch {
		case c == '-':
			c = '+'
		case c == '_':
			c = '/'
		case c == '\n' || c == '\r' || c == ' ' || c == '\t':
			continue
		case c != '+' && c != '/' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z'):
			return nil, false
		}
		plain = append(plain, c)
	}
	n, err := base64.RawStdEncoding.Decode(plain, plain)
	return plain[:n], err == nil
}
