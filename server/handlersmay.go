package server

import (
	"net/http"

	"github.com/informerd/informerd/server/access"
	"github.com/informerd/informerd/server/handlers"
)

// steering are what can be done with a handler, each by who has the right to post to its path.
var steering = []string{"pause", "resume", "redrive"}

// shownHandler is one handler and what who asks may do with it, so that nobody is offered
// what would be refused.
type shownHandler struct {
	handlers.Status
	May []string `json:"may"`
}

// allowedSteering is what who asks may do with a handler.
func allowedSteering(r *http.Request, name string) ([]string, error) {
	who := access.From(r.Context())
	may := []string{}
	for _, what := range steering {
		ok, err := who.Path(r.Context(), "post", handlersPath+"/"+name+"/"+what)
		if err != nil {
			return nil, access.Unknown(who, err)
		}
		if ok {
			may = append(may, what)
		}
	}
	return may, nil
}
