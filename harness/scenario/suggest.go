package scenario

import (
	"fmt"
	"strings"
)

// maxSuggestInput bounds what is compared: a longer word is no typing mistake.
const maxSuggestInput = 64

// didYouMean is `, did you mean "X"?` or nothing. A third of the letters may differ.
func didYouMean(got string, known []string) string {
	if len(got) > maxSuggestInput {
		return ""
	}
	best, least := "", max(1, len(got)/3)+1
	for _, k := range known {
		switch d := distance(strings.ToLower(got), strings.ToLower(k)); {
		case d < least && d < len(k):
			best, least = k, d
		case d == least:
			best = "" // as near to one as to another: a guess would not help
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is the optimal string alignment distance: insert, delete, replace or swap two neighbours.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(row[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// oneOf is "a", "a or b", "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// quote shows a text of the file within a message, on one line and short.
func quote(s string) string { return fmt.Sprintf("%.64q", s) }
