package server

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"
)

// waiting are the parameters that decide when an answer is given, not what it
// is.
var waiting = []string{"resourceVersion", "timeout"}

// etag names an answer: what it was taken from (state) and what was asked. It is
// weak, because the same answer may be sent compressed or not.
func etag(r *http.Request, state string) string {
	query := make(url.Values)
	for name, values := range paramsOf(r).Values {
		query[name] = values
	}
	for _, name := range waiting {
		query.Del(name)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.URL.EscapedPath() + "?" + query.Encode()))
	return fmt.Sprintf(`W/"%s-%x"`, state, h.Sum64())
}

// notModified sets the ETag and says whether the client holds this very answer;
// then 304 is all it gets.
func notModified(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	if !matches(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

func matches(lists []string, tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	for candidate := range strings.SplitSeq(strings.Join(lists, ","), ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == opaque {
			return true
		}
	}
	return false
}
