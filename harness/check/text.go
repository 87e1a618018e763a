package check

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

// maxShown bounds a text of others in a violation, in code points.
const maxShown = 200

// quoted is a text of others, safe to print.
func quoted(s string) string { return `"` + contract.SafeText(s, maxShown) + `"` }

func joined(parts []string, sep string) string { return strings.Join(parts, sep) }

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// shown is a condition for people.
func shown(c *history.Condition) string {
	if c == nil {
		return "absent"
	}
	return c.Type + "=" + c.Status + "/" + c.Reason + " " + quoted(c.Message)
}

// short is a duration without needless digits.
func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// names says whether a rollup's message names who ("node" or "node/keyID"), as a word of its own, or is cut.
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

func number(n int64) string { return strconv.FormatInt(n, 10) }
