package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mark may be set while the API server writes a line.
func TestAuditMark(t *testing.T) {
	c := &Cluster{audit: filepath.Join(t.TempDir(), "audit.log")}
	began := time.Now()
	var log strings.Builder
	for i := range 3 {
		fmt.Fprintf(&log, `{"verb":"get","requestURI":"/%d","userAgent":%q,"requestReceivedTimestamp":%q}`+"\n",
			i, Agent+"test", began.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano))
	}
	lines := strings.SplitAfter(log.String(), "\n")
	for _, cut := range []int{0, 1, 10, len(lines[1]) - 1, len(lines[1])} {
		if err := os.WriteFile(c.audit, []byte(lines[0]+lines[1][:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		mark := c.AuditMark(t)
		mark.at = began.Add(time.Second + time.Millisecond)
		if got := c.Audit(t, mark, Agent); len(got) != 0 {
			t.Errorf("mark after %d bytes of a line, nothing after it: %v", cut, got)
		}
		if err := os.WriteFile(c.audit, []byte(log.String()+`{"verb":`), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.Audit(t, mark, Agent); len(got) != 1 || got[0].URI != "/2" {
			t.Errorf("mark after %d bytes of a line: %v, want the third request", cut, got)
		}
	}
	if got := c.Audit(t, Mark{}, Agent); len(got) != 3 {
		t.Errorf("from the beginning: %v", got)
	}
}
