package kubeapi

import (
	"io"
	"net/http"
	"time"
)

// A body that is passed on has to arrive at minRate, after paceGrace: it holds a place
// that others want.
const (
	minRate   = 4 << 10 // bytes a second
	paceGrace = 10 * time.Second
)

// paced is the body of a request whose client is waited for as long as it keeps up.
type paced struct {
	io.ReadCloser
	control *http.ResponseController
	began   time.Time
	read    int64
}

// pace makes the body of r end with an error if it comes too slowly.
func pace(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	r.Body = &paced{ReadCloser: r.Body, control: http.NewResponseController(w), began: time.Now()}
}

func (p *paced) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(p.began.Add(paceGrace + time.Duration(p.read)*time.Second/minRate))
	n, err := p.ReadCloser.Read(b)
	p.read += int64(n)
	if err == io.EOF { // the server goes on to listen whether the client leaves
		_ = p.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
