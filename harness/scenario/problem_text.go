package scenario

import (
	"fmt"
	"strings"
)

// oneOf is "a", "a or b", "a, b or c".
func oneOf(keywords []string) string {
	if len(keywords) < 2 {
		return strings.Join(keywords, "")
	}
	return strings.Join(keywords[:len(keywords)-1], ", ") + " or " + keywords[len(keywords)-1]
}

// quote shows a text of the file within a message, on one line and short.
func quote(s string) string { return fmt.Sprintf("%.64q", s) }
