package websocket

import (
	"crypto/sha1" // the protocol's choice; nothing depends on its strength
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// TokenProtocol begins the subprotocol by which a page in a browser, which cannot set
// headers of a WebSocket, gives its token to an API server: the rest is the token in
// base64 for URLs.
const TokenProtocol = "base64url.bearer.authorization.k8s.io."

const (
	// version is the only one there is outside of drafts.
	version = "13"
	// keySuffix is what a server shows with that it speaks the protocol.
	keySuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
)

// Asked reports whether r asks for a WebSocket.
func Asked(r *http.Request) bool {
	return r.Method == http.MethodGet && r.ProtoMajor == 1 &&
		strings.EqualFold(r.Header.Get("Upgrade"), "websocket") &&
		slices.ContainsFunc(words(r.Header, "Connection"), func(w string) bool { return strings.EqualFold(w, "upgrade") })
}

// Handshake is the head of the answer to r, with h among its headers, or what is wrong
// with r. Of the subprotocols that a client offers the first is taken: what is sent is the
// same in all of them, and browsers want an answer where they have offered any. One that
// carries a token is not answered with.
func Handshake(r *http.Request, h http.Header) (*http.Response, error) {
	if got := r.Header.Get("Sec-WebSocket-Version"); got != version {
		return nil, fmt.Errorf("version %q of the WebSocket protocol is not spoken here, only %s", got, version)
	}
	key := strings.TrimSpace(r.Header.Get("Sec-WebSocket-Key"))
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 16 {
		return nil, fmt.Errorf("the Sec-WebSocket-Key header is not 16 bytes in base64")
	}
	proof := sha1.Sum([]byte(key + keySuffix))
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Del("Content-Type")
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", "websocket")
	h.Set("Sec-WebSocket-Accept", base64.StdEncoding.EncodeToString(proof[:]))
	for _, offered := range words(r.Header, "Sec-WebSocket-Protocol") {
		if !strings.HasPrefix(offered, TokenProtocol) {
			h.Set("Sec-WebSocket-Protocol", offered)
			break
		}
	}
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: h}, nil
}

// words are those of a header that lists them between commas.
func words(h http.Header, name string) []string {
	var all []string
	for word := range strings.SplitSeq(strings.Join(h.Values(name), ","), ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}
