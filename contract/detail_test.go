package contract

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// checkSafe says what is wrong with a text that SafeText may have made.
func checkSafe(text string, maxChars int) error {
	if !utf8.ValidString(text) {
		return errors.New("not valid UTF-8")
	}
	if n := utf8.RuneCountInString(text); n > max(0, maxChars) {
		return fmt.Errorf("%d characters, more than %d", n, maxChars)
	}
	for _, r := range text {
		if r != ' ' && (unicode.IsControl(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Noncharacter_Code_Point)) {
			return fmt.Errorf("holds %U", r)
		}
	}
	if strings.TrimSpace(text) != text || strings.Contains(text, "  ") {
		return errors.New("has blanks at an end or two in a row")
	}
	return nil
}

func TestSafeText(t *testing.T) {
	for _, tt := range []struct {
		in, want string
		max      int
	}{
		{"", "", 10},
		{"plain", "plain", 10},
		{"  two\r\n lines\t", "two lines", 20},
		{"a\x00b\x1b[31mc\x7f", "a b [31mc", 20},
		{"\u0085a\u2028b\u2029c", "a b c", 20},
		{"left\u202eright\u200bzero\ufeff", "left right zero", 20},
		{"a\ufffeb\uffffc\U0010fffed", "a b c d", 20},
		{"bad \xff\xfe bytes", "bad �� bytes", 20},
		{"Schlüssel 🔑", "Schlüssel 🔑", 11},
		{"exactly ten", "exactly ten", 11},
		{"exactly ten!", "exac… (cut)", 11},
		{"blank at the cut", "blank… (cut)", 13},
		{"abcdefghij", "… (cut)", 7},
		{"abcdefghij", "…", 1},
		{"abcdefghij", "", 0},
		{"abcdefghij", "", -1},
	} {
		got := SafeText(tt.in, tt.max)
		if got != tt.want {
			t.Errorf("SafeText(%q, %d) = %q, expected %q", tt.in, tt.max, got, tt.want)
		}
		if err := checkSafe(got, tt.max); err != nil {
			t.Errorf("SafeText(%q, %d) = %q: %v", tt.in, tt.max, got, err)
		}
		if again := SafeText(got, tt.max); again != got {
			t.Errorf("not idempotent: %q becomes %q", got, again)
		}
	}
}

func TestSafeDetailCutsOneMiB(t *testing.T) {
	got := SafeDetail(strings.Repeat("ä", 1<<20))
	if utf8.RuneCountInString(got) != MaxDetailChars || !strings.HasSuffix(got, CutMark) {
		t.Errorf("%d characters ending in %q", utf8.RuneCountInString(got), got[len(got)-12:])
	}
}

// TestCheckSafeFindsBadOnes is the known-bad subject of checkSafe.
func TestCheckSafeFindsBadOnes(t *testing.T) {
	for _, bad := range []string{"a\nb", "a\x00", "\xff", "\u202e", "\uffff", "a  b", " a", "eleven char"} {
		if checkSafe(bad, 10) == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func BenchmarkSafeDetailOfOneMiB(b *testing.B) {
	text := strings.Repeat("x", 1<<20)
	for b.Loop() {
		SafeDetail(text)
	}
}

func TestSafeLines(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"INVARIANT  STATUS\n  seen:    a\n", "INVARIANT  STATUS\n  seen:    a\n"},
		{"  node \x1b]0;title\x07cp-1\nnext\u202e", "  node ]0;title cp-1\nnext"},
		{"bad \xff", "bad \ufffd"},
		{strings.Repeat("x", 60), strings.Repeat("x", 43) + CutMark},
	} {
		if got := SafeLines(tt.in, 50); got != tt.want {
			t.Errorf("SafeLines(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}
