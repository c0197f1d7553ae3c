package terminal

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// age is how long ago a time is, as kubectl says it.
func age(timestamp string, now time.Time) string {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(t), 0))
}

func ratio(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// quoteCEL is a text as CEL writes it.
func quoteCEL(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(text) + `"`
}
