// Package websocket opens WebSockets, as a browser or a proxy of one does.
package websocket

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gorilla/websocket"
)

// RefusedError is an answer that is no WebSocket.
type RefusedError struct {
	Code int
	Body string // how it begins
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Body) }

// Dial opens a WebSocket at the URL of a server, which begins with http or https, and
// returns the head of its answer, too. The error is a *RefusedError if the answer is
// another one.
func Dial(ctx context.Context, server string, tlsConfig *tls.Config, header http.Header) (*websocket.Conn, *http.Response, error) {
	dialer := &websocket.Dialer{TLSClientConfig: tlsConfig}
	c, resp, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(server, "http"), header)
	if errors.Is(err, websocket.ErrBadHandshake) {
		body, _ := io.ReadAll(resp.Body) // of which the first KB is kept
		return nil, resp, &RefusedError{resp.StatusCode, string(body)}
	}
	return c, resp, err
}

// Ended reports whether an error of reading says that the server has ended the WebSocket
// as one does when all is said.
func Ended(err error) bool { return websocket.IsCloseError(err, websocket.CloseNormalClosure) }
