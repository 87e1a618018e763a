// Package suggest guesses what a mistyped word was meant to be.
package suggest

import (
	"fmt"
	"strings"
)

// maxInput bounds what is compared, in bytes: a longer word is no typing mistake.
const maxInput = 256

// minPrefix is how many bytes of a word say which one is meant, where only one begins so.
const minPrefix = 3

// Nearest is the known word that got was meant to be: a third of its letters may differ, or it is the beginning of one. It is empty where
// none is near, or two are as near. Case does not matter.
func Nearest(got string, known []string) string {
	if len(got) > maxInput {
		return ""
	}
	// In half letters: a word that got is the beginning of is as near as one and a half.
	best, least := "", 2*max(1, len(got)/3)+2
	for _, k := range known {
		d := 2 * distance(strings.ToLower(got), strings.ToLower(k))
		if len(got) >= minPrefix && strings.HasPrefix(strings.ToLower(k), strings.ToLower(got)) {
			d = min(d, 3)
		}
		switch {
		case d < least && d < 2*len(k):
			best, least = k, d
		case d == least && k != best:
			best = ""
		}
	}
	return best
}

// DidYouMean is `, did you mean "X"?`, to be added to a message, or nothing. A word that is known is wrong for another reason.
func DidYouMean(got string, known []string) string {
	best := Nearest(got, known)
	if best == "" || best == got {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is the optimal string alignment distance in bytes: insert, delete, replace or swap two neighbours.
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
