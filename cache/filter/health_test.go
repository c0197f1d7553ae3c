package filter

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestHealthIsOfTheTimeAsked: the same object is another thing ten minutes later, and an
// expression that asks for its health says that it depends on the time.
func TestHealthIsOfTheTimeAsked(t *testing.T) {
	const claim = `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"x","creationTimestamp":"2026-01-02T11:55:00Z"},"status":{"phase":"Pending"}}`
	for after, want := range map[time.Duration]string{0: "progressing Pending", time.Hour: "unknown Pending"} {
		f, err := Compile(fmt.Sprintf(`health(object) + " " + healthReason(object) == %q`, want), noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		if !f.Clock() {
			t.Error("the answer does not depend on the time")
		}
		if ok, _, err := f.Match(context.Background(), []byte(claim)); !ok || err != nil {
			t.Errorf("after %v it is not %s (%v)", after, want, err)
		}
	}
}
