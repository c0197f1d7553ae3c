// Package spelling tells how far one word is from another, for messages that ask
// what was meant.
package spelling

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
