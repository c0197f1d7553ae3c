package terminal

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/informerd/informerd/cmd/informerd/terminal/client"
)

// change is one event of a stream about many resources.
type change struct {
	Type             string
	Resource         string // with the cluster before it, where it has a name
	Object           json.RawMessage
	InitialEventsEnd bool
	State            string
	Reason           string
	Answered         *bool
	FilterErrors     json.RawMessage
	Resumed          bool // of an opened stream: what was told before still holds
}

// follow streams what q selects until ctx ends or each returns an error.
func (s *session) follow(v url.Values, each func(*change, []byte) error) error {
	return s.Follow(s.ctx, client.Path("query"), v, func(e client.Event) error {
		if e.Type == client.Opened {
			return each(&change{Type: e.Type, Resumed: e.ID != ""}, nil)
		}
		var c change
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		return each(&c, e.Data)
	})
}

// stateText says how a resource stands, "" where it stands well.
func (c *change) stateText() string {
	if c.State == "live" && (c.Answered == nil || *c.Answered) {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s is %s: %s", c.Resource, c.State, c.Reason), ": ")
}

// unmarshal names what could not be read.
func unmarshal(object json.RawMessage, into any) error {
	if err := json.Unmarshal(object, into); err != nil {
		return fmt.Errorf("read the object of an event: %w", err)
	}
	return nil
}
