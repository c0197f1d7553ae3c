// Package spelling finds the known word that an unknown one may stand for, for
// messages that ask what was meant.
package spelling

import "strings"

// Nearest is the known word that word was probably meant to be, case aside, the
// first of several; "" if none is near enough.
func Nearest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Distance is how many bytes have to be inserted, removed or replaced to make a
// into b (Levenshtein's distance). It takes len(a)*len(b) steps, so it is for
// names.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
