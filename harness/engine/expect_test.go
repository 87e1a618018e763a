package engine

import "testing"

func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"a == 1":           "a == 1",
		"a &&\n    b || c": "a && b || c",
		well:               `!APIkmsActive && APIreports.size() == 0 && !APIrol … || APIkmsActive && APIrollup.degraded.status == "Fals …`,
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
