package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
)

// line is one affected node or plugin in a rollup's message. Lines stand worst first, so that what is cut off from
// a long message is the least bad; within one rank they are sorted by name.
//
// No line holds an age or the time of a probe: the message would change with every report, and the aggregator
// would write in a steady state.
type line struct {
	rank rank
	key  string // node or node/keyID, safe to print
	text string
}

func (l line) String() string { return l.key + ": " + l.text }

// minLineChars is what a line keeps at least when a message is too long: enough to name a plugin on a node with a
// usual name, and how it failed.
const minLineChars = 96

// message joins lines within the limit of a rollup's message. When they do not all fit, every line is cut to an
// equal share first, because a name without its detail tells more than a detail without the other names.
func message(lines []line) string {
	sorted := slices.Clone(lines)
	slices.SortFunc(sorted, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), compare(a.key, b.key), compare(a.text, b.text))
	})
	out := make([]string, len(sorted))
	for i, l := range sorted {
		out[i] = l.String()
	}
	return bounded(out, contract.MaxRollupMessageChars)
}

// bounded joins lines with line feeds in at most limit code points, ending with "and N more" if some are left out.
func bounded(lines []string, limit int) string {
	if joined := strings.Join(lines, "\n"); utf8.RuneCountInString(joined) <= limit {
		return joined
	}
	share := max(minLineChars, limit/len(lines)-1)
	left := limit - len("\nand 1000000 more")
	var b strings.Builder
	for i, l := range lines {
		l = contract.SafeText(l, share)
		size := utf8.RuneCountInString(l) + 1
		if size > left {
			return strings.TrimPrefix(fmt.Sprintf("%s\nand %d more", b.String(), len(lines)-i), "\n")
		}
		left -= size
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l)
	}
	return b.String()
}

func plugin(node, keyID string) string { return safeName(node) + "/" + safeName(keyID) }

// safeName is a name of others, to be printed. 64 characters hold every usual node name and all of a keyID's
// digits; a longer one is cut visibly.
func safeName(name string) string { return contract.SafeText(name, 64) }

func compare(a, b string) int { return strings.Compare(a, b) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
