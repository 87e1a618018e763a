package invariants

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// names reports whether a rollup's message names who ("node" or "node/keyID"), as a word of its own, or is cut.
func names(message, who string) bool {
	who = nameShown(who)
	for rest, at := message, 0; ; {
		i := strings.Index(rest[at:], who)
		if i < 0 {
			return isCut(message)
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(rest[:i])
		after, _ := utf8.DecodeRuneInString(rest[i+len(who):])
		if !partOfName(before) && (len(who) > maxNameShown || !partOfName(after)) {
			return true
		}
		at = i + 1
	}
}

// maxNameShown: longer names may stand cut in a message, so only their beginning is looked for.
const maxNameShown = 48

func nameShown(who string) string {
	if len(who) <= maxNameShown {
		return who
	}
	node, _, _ := strings.Cut(who, "/")
	return node[:min(len(node), maxNameShown)]
}

func partOfName(r rune) bool {
	return r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

func isCut(message string) bool {
	return regexp.MustCompile(`and [0-9]+ more$`).MatchString(message)
}
