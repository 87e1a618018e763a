package fault

import (
	"fmt"
	"strings"
)

// maxDistance is how many typing mistakes are forgiven; more, and the suggestion would be a guess.
const maxDistance = 3

// suggest is " (did you mean …?)" or nothing.
func suggest(got string, known []string) string {
	if len(got) > 64 {
		return ""
	}
	best, bestDistance := "", maxDistance+1
	for _, name := range known {
		d := distance(got, name)
		if len(got) >= 3 && strings.HasPrefix(name, got) {
			d = 1
		}
		if d < bestDistance && d < len(name) {
			best, bestDistance = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
