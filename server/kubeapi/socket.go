package kubeapi

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/server/websocket"
)

// checkSocket refuses a watch over a WebSocket that cannot be opened, before anything is
// done for it.
func checkSocket(r *http.Request) error {
	if !websocket.Asked(r) {
		return nil
	}
	_, err := handshake(r, nil)
	return err
}

func handshake(r *http.Request, h http.Header) (*http.Response, error) {
	head, err := websocket.Handshake(r, h)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return head, nil
}

// serveSocket is serve over a WebSocket, each event a message. The API server has it for
// pages in browsers, which cannot read a watch otherwise, and Headlamp uses it. Everything
// before it is what any watch goes through.
func (s *stream) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, began error) error {
	head, err := handshake(r, w.Header())
	if err != nil {
		return err
	}
	conn, buffered, err := s.api.TakeOver(w)
	if err != nil {
		return err
	}
	// The request does not notice any more that its client goes.
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	socket, err := websocket.Open(conn, buffered, head, gone)
	if err != nil {
		return cut(err)
	}
	defer socket.Cut()
	s.out = newMessages(socket)
	if err := s.serve(ctx, began); err != nil {
		return err
	}
	_ = socket.Close() // whoever is gone needs no goodbye
	return nil
}
