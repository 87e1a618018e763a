package printer

import "testing"

func TestColour(t *testing.T) {
	for text, want := range map[string]string{
		"== plugin-hangs: passed\n":              "== plugin-hangs: \x1b[32mpassed\x1b[0m\n",
		"plugin  plugin-hangs  FAILED  4.1s\n":   "plugin  plugin-hangs  \x1b[31mFAILED\x1b[0m  4.1s\n",
		"a  INCONCLUSIVE\nb  held":               "a  \x1b[33mINCONCLUSIVE\x1b[0m\nb  \x1b[32mheld\x1b[0m",
		"e2e: 1 passed, 0 failed":                "e2e: 1 \x1b[32mpassed\x1b[0m, 0 failed",
		"core  NOT conformant":                   "core  \x1b[31mNOT conformant\x1b[0m",
		"NO-ORPHAN, ABSENCE-IS-NOT-BROKEN":       "NO-ORPHAN, ABSENCE-IS-NOT-BROKEN",
		"what has passed is passed on to others": "what has passed is passed on to others",
	} {
		if got := string(colour([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
