package scenario

import (
	"fmt"
	"strings"
)

// oneOf is "a", "a or b", "a, b or c".
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// quote shows a text of the file within a message, on one line and short.
func quote(s string) string { return fmt.Sprintf("%.64q", s) }
