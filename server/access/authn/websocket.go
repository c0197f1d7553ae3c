package authn

import (
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/informerd/informerd/server/websocket"
)

// bearer is the token that a request carries, as the API server reads it; "" if it
// carries none.
func bearer(h http.Header) string {
	scheme, token, ok := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if ok && strings.EqualFold(scheme, "bearer") {
		token, _, _ = strings.Cut(token, " ")
		return token
	}
	if strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return protocolToken(h.Values("Sec-WebSocket-Protocol"))
	}
	return ""
}

// protocolToken is the only token among subprotocols, if there is another
// subprotocol: the server must have one to choose.
func protocolToken(protocols []string) string {
	token, tokens, others := "", 0, 0
	for protocol := range strings.SplitSeq(strings.Join(protocols, ","), ",") {
		encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), websocket.TokenProtocol)
		if !ok {
			others++
			continue
		}
		tokens++
		decoded, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil || !utf8.Valid(decoded) {
			return ""
		}
		token = string(decoded)
	}
	if tokens != 1 || others == 0 {
		return ""
	}
	return token
}
