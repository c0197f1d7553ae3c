package server

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/informerd/informerd/server/reply"
)

const (
	typeJSON   = "application/json"
	typeText   = "text/plain"
	typeEvents = "text/event-stream"
)

// negotiate refuses a client that does not take the type of the answer.
func negotiate(w http.ResponseWriter, r *http.Request, mediaType string) error {
	w.Header().Add("Vary", "Accept")
	if accepts(r, mediaType) {
		return nil
	}
	hint := ""
	if mediaType == typeJSON && accepts(r, typeEvents) {
		hint = "; for an event stream add watch=true"
	}
	return statusError(reply.Failure(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		fmt.Sprintf("the answer is %s, which the Accept header excludes%s", mediaType, hint)))
}

// accepts says whether the Accept header admits a media type. Preferences among
// several do not matter here, a q of 0 does.
func accepts(r *http.Request, mediaType string) bool {
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return true
	}
	major, _, _ := strings.Cut(mediaType, "/")
	bestLevel, accepted := 0, false
	for part := range strings.SplitSeq(header, ",") {
		got, args, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		level := 0
		switch got {
		case mediaType:
			level = 3
		case major + "/*":
			level = 2
		case "*/*":
			level = 1
		}
		if level > bestLevel {
			bestLevel, accepted = level, strings.Trim(args["q"], "0.") != "" || args["q"] == ""
		}
	}
	return accepted
}
