package kubeapi

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/informerd/informerd/server/websocket"
)

// serveSocket is serve over a WebSocket, each event a message. The API server has it for
// pages in browsers, which cannot read a watch otherwise, and Headlamp uses it. Everything
// before it is what any watch goes through.
func (s *stream) serveSocket(ctx context.Context, w http.ResponseWriter, r *http.Request, began error) error {
	// The request does not notice any more that its client goes.
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	socket, err := websocket.Open(w, r, s.api.TakeOver, gone)
	if wrong, ok := errors.AsType[*websocket.HandshakeError](err); ok {
		return apierrors.NewBadRequest(wrong.Error())
	}
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
