package terminal

import "strings"

// The colours are those of the eight that every terminal has; its owner chose how they look.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	bold   = "1"
	plain  = ""
)

// paint puts text into a colour.
func paint(text, colour string) string {
	if colour == plain || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// words are values that say how it stands, in the columns that are about that.
var words = map[string]string{
	"Running": green, "Ready": green, "Active": green, "Bound": green, "True": green, "Complete": green, "Completed": green,
	"Succeeded": green, "Healthy": green, "Available": green, "good": green, "ADDED": green, "live": green,
	"Pending": yellow, "ContainerCreating": yellow, "PodInitializing": yellow, "Terminating": yellow, "Unknown": yellow,
	"Progressing": yellow, "progressing": yellow, "unknown": yellow, "MODIFIED": yellow, "stale": yellow, "warm": yellow, "Released": yellow,
	"False": red, "Failed": red, "Error": red, "CrashLoopBackOff": red, "ImagePullBackOff": red, "ErrImagePull": red, "Evicted": red,
	"OOMKilled": red, "NotReady": red, "Lost": red, "Degraded": red, "bad": red, "DELETED": red, "missing": red, "forbidden": red,
	"CreateContainerConfigError": red, "InvalidImageName": red,
}

// styleOf is the colour of a cell under a header.
func styleOf(header, cell string) string {
	switch header {
	case "STATUS", "READY", "EVENT", "HEALTH", "STATE", "PHASE", "MISSING":
	default:
		return plain
	}
	if ready, wanted, ok := strings.Cut(cell, "/"); ok && header == "READY" {
		switch {
		case ready == wanted:
			return plain
		case ready == "0":
			return red
		}
		return yellow
	}
	first, _, _ := strings.Cut(cell, ",")
	return words[first]
}
