// Package websocket writes messages to WebSockets (RFC 6455), as much of it as a watch
// needs: the server's side of HTTP/1.1, text messages out and nothing in. No message is
// compressed, and it does not look at where a page that asks is from: whoever opens a
// WebSocket must have done that, as browsers let every page open one to everywhere and
// read what comes.
package websocket
