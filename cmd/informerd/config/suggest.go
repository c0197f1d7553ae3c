package config

import (
	"fmt"
	"strings"

	"github.com/informerd/informerd/cache/spelling"
)

// didYouMean is the end of a message about an unknown word: the known word that
// is nearest to it, else all of them.
func didYouMean(word string, known []string) string {
	if best := spelling.Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "known are " + strings.Join(known, ", ")
}
