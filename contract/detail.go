package contract

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// CutMark ends a text that was cut to its limit, so that a reader sees that there was more.
const CutMark = "… (cut)"

// SafeText makes text from a process that may be hostile safe to store, log and print: valid UTF-8, one line, no
// control or invisible formatting characters, at most maxChars code points, cut with CutMark. It is idempotent.
//
// It looks at no more input than it can need, so a text of many MiB costs no more than a short one.
func SafeText(text string, maxChars int) string {
	if len(text) <= maxChars && plainKeywords(text) {
		return text
	}
	var b strings.Builder
	chars, space := 0, false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		if unsafe(r) || unicode.IsSpace(r) {
			space = true // a run of them becomes one space, and none at either end
			continue
		}
		if space && chars > 0 {
			b.WriteByte(' ')
			chars++
		}
		space = false
		b.WriteRune(r) // RuneError for an invalid byte: visible, and valid UTF-8
		chars++
		if chars > maxChars {
			break
		}
	}
	return cut(b.String(), maxChars)
}

// SafeLines is SafeText of each line, which keeps its indentation and its columns: for a text of several lines whose parts came from outside.
func SafeLines(text string, maxChars int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if plainLine(line) && len(line) <= maxChars {
			continue
		}
		rest := strings.TrimLeft(line, " ")
		lines[i] = line[:len(line)-len(rest)] + SafeText(rest, maxChars)
	}
	return strings.Join(lines, "\n")
}

// plainLine reports whether a line is printable as it stands. Unlike SafeText it allows columns, which are several spaces.
func plainLine(line string) bool {
	return utf8.ValidString(line) && !strings.ContainsFunc(line, unsafe)
}

// plainKeywords says that a text is words of printable ASCII with one space between them, as most are: nothing of it has to change.
func plainKeywords(text string) bool {
	space := true // before the first word
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c > '~' || space && c == ' ' {
			return false
		}
		space = c == ' '
	}
	return !space || text == ""
}

// SafeDetail is SafeText with the limit of a report's detail.
func SafeDetail(text string) string { return SafeText(text, MaxDetailChars) }

// unsafe covers C0, C1 and DEL, the format characters (bidirectional overrides, zero width, byte order mark) that let
// a text show as something that it is not, and the noncharacters (U+FFFE, U+FFFF, …), for which the API server, which
// reads an apply as YAML, would reject the whole of it.
func unsafe(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Noncharacter_Code_Point)
}

func cut(s string, maxChars int) string {
	if utf8.RuneCountInString(s) <= maxChars {
		return s
	}
	mark := strings.TrimRight(firstChars(CutMark, maxChars), " ") // all of it, unless the limit is absurdly small
	return strings.TrimRight(firstChars(s, maxChars-utf8.RuneCountInString(mark)), " ") + mark
}

// firstChars is the first n code points of s.
func firstChars(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}
