package config

import (
	"fmt"
	"strings"

	"github.com/informerd/informerd/cache/spelling"
)

// didYouMean is the end of a message about an unknown word: the known word that
// is nearest to it, else all of them.
func didYouMean(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := spelling.Distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
