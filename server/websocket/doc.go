// Package websocket sends messages over WebSockets (RFC 6455), as much of it as a watch
// needs: the server's side of HTTP/1.1, text messages out and nothing in. It knows no
// extensions, so that no message is compressed, and it does not look at where a page
// that asks is from: whoever accepts a WebSocket must have done that, as browsers let
// every page open one to everywhere and read what comes.
package websocket
