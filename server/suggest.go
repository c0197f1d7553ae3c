package server

// nearest is the known word that word was probably meant to be, or "".
func nearest(word string, known []string) string {
	best, bestAt := "", len(word)/3+2
	for _, k := range known {
		if d := distance(word, k); d < bestAt {
			best, bestAt = k, d
		}
	}
	return best
}

// distance is the number of letters to change, add or leave out, case aside.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i]|0x20 == b[j]|0x20 {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
