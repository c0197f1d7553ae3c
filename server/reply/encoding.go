package reply

import (
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip is what the client says of gzip, or of all encodings.
func AcceptsGzip(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept-Encoding") {
		for clause := range strings.SplitSeq(accept, ",") {
			coding, quality, _ := strings.Cut(clause, ";")
			coding = strings.ToLower(strings.TrimSpace(coding))
			if coding != "gzip" && coding != "*" {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(quality, " ", ""), "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}
