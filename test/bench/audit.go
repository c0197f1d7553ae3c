package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
)

// auditMark is the present end of the audit log.
func (c *cluster) auditMark() (int64, error) {
	info, err := os.Stat(c.info.AuditLog)
	if err != nil {
		return 0, fmt.Errorf("read audit log: %w", err)
	}
	return info.Size(), nil
}

// requests are those since mark by clients whose user agent begins with agent.
// That there are none is an error: what is counted in them would be none as well.
func (c *cluster) requests(mark int64, agent string) ([]auditLine, error) {
	f, err := os.Open(c.info.AuditLog)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(mark, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var all []auditLine
	for line := range strings.Lines(string(data)) {
		var r auditLine
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("read audit log: %w", err)
		}
		if strings.HasPrefix(r.UserAgent, agent) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the audit log has no request of %s", agent)
	}
	return all, nil
}

type auditLine struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
}

// isList reports whether a request made the server send every object: a LIST, or
// a watch that begins with the present objects.
func (r auditLine) isList() bool {
	return r.Verb == "list" && !r.isVersion() || r.Verb == "watch" && strings.Contains(r.RequestURI, "sendInitialEvents=true")
}

// isVersion reports whether a request asked for one object's metadata, to learn the
// version that etcd is at.
func (r auditLine) isVersion() bool {
	_, query, _ := strings.Cut(r.RequestURI, "?")
	values, err := url.ParseQuery(query)
	return err == nil && r.Verb == "list" && values.Get("limit") == "1"
}

// isDefinitions reports whether a request is the watch of discovery on what the
// cluster serves. It is made at every start, and holds a few objects of no
// replicated resource.
func (r auditLine) isDefinitions() bool {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return r.Verb == "watch" && (strings.HasSuffix(path, "/customresourcedefinitions") || strings.HasSuffix(path, "/apiservices"))
}
