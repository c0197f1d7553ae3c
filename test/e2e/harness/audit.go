package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Request is one line of the audit log.
type Request struct {
	Verb      string
	URI       string
	UserAgent string
	User      string
	Resource  string // as kubectl names it, with its group; empty for others
	Namespace string
	Name      string
	Code      int
	Received  time.Time
}

// IsList says whether a request made the server send every object: a LIST, or a
// watch that begins with the present objects. A list of metadata does not.
func (r Request) IsList() bool {
	return r.Verb == "list" && !r.IsMetadataPage() || r.Verb == "watch" && strings.Contains(r.URI, "sendInitialEvents=true")
}

// metadataPage has the limits of lists of metadata: pages to compare a copy with, and
// one object for the version of a consistent read.
var metadataPage = regexp.MustCompile(`[?&]limit=1(000)?(&|$)`)

// IsMetadataPage says whether a request listed metadata. The audit log does not say
// what a client accepts; no other list of informerd has these limits.
func (r Request) IsMetadataPage() bool {
	return r.Verb == "list" && metadataPage.MatchString(r.URI)
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s (%s, %s) %d", r.Verb, r.URI, r.User, r.UserAgent, r.Code)
}

// Agent is how the user agent of informerd begins.
const Agent = "informerd/"

// Mark is a moment in the audit log. A request counts by when the API server got
// it, since its line may be written much later on a busy machine.
type Mark struct {
	// No line before it is of a later request. It may be within a line: the size of a
	// file that is written to is seen to grow by pages of memory, not by lines.
	offset int64
	at     time.Time
}

// AuditMark is the present moment.
func (c *Cluster) AuditMark(tb testing.TB) Mark {
	tb.Helper()
	info, err := os.Stat(c.audit)
	if err != nil {
		tb.Fatal(err)
	}
	return Mark{info.Size(), time.Now()}
}

// Audit are the requests got since mark by clients whose user agent begins with
// agent.
func (c *Cluster) Audit(tb testing.TB, mark Mark, agent string) []Request {
	tb.Helper()
	f, err := os.Open(c.audit)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(max(0, mark.offset-1), io.SeekStart); err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		tb.Fatal(err)
	}
	if mark.offset > 0 {
		// The rest of the line in which the mark is, or the end of the one before it.
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	var all []Request
	for line := range bytes.Lines(data) {
		// A line still being written has no end yet and is read the next time.
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		r, err := parseAudit(line)
		if err != nil {
			tb.Fatalf("%s: %v", c.audit, err)
		}
		if strings.HasPrefix(r.UserAgent, agent) && !r.Received.Before(mark.at) {
			all = append(all, r)
		}
	}
	return all
}

// Lists are those of the requests that made the server send every object, by
// resource.
func Lists(requests []Request) map[string][]Request {
	lists := map[string][]Request{}
	for _, r := range requests {
		if r.IsList() {
			lists[r.Resource] = append(lists[r.Resource], r)
		}
	}
	return lists
}

func parseAudit(line []byte) (Request, error) {
	var entry struct {
		Verb       string `json:"verb"`
		RequestURI string `json:"requestURI"`
		UserAgent  string `json:"userAgent"`
		User       struct {
			Username string `json:"username"`
		} `json:"user"`
		ObjectRef struct {
			Resource  string `json:"resource"`
			APIGroup  string `json:"apiGroup"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"objectRef"`
		ResponseStatus struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
		Received time.Time `json:"requestReceivedTimestamp"`
	}
	if err := json.Unmarshal(line, &entry); err != nil {
		return Request{}, fmt.Errorf("read audit line %q: %w", line, err)
	}
	resource := entry.ObjectRef.Resource
	if entry.ObjectRef.APIGroup != "" {
		resource += "." + entry.ObjectRef.APIGroup
	}
	return Request{
		Verb: entry.Verb, URI: entry.RequestURI, UserAgent: entry.UserAgent, User: entry.User.Username,
		Resource: resource, Namespace: entry.ObjectRef.Namespace, Name: entry.ObjectRef.Name,
		Code: entry.ResponseStatus.Code, Received: entry.Received,
	}, nil
}
