package suggest_test

import (
	"strings"
	"testing"

	"github.com/kmsharness/kmsharness/internal/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"plugin", "reporter", "aggregator", "etcd", "hang", "socket-removed", "socket-refused", "hanged-x", "hanged-xyz"}
	for got, want := range map[string]string{
		"repotrer": "reporter", "Plugin": "plugin", "etc": "etcd", "agg": "aggregator", "hagn": "hang",
		"socket-":         "",                                      // two begin so
		"socket-removedd": "socket-removed", "hanged-": "hanged-x", // one letter is less than the rest of a word
		"x": "", "kube": "", "": "", strings.Repeat("plugin", 20): "",
	} {
		if is := suggest.Nearest(got, known); is != want {
			t.Errorf("%q: %q, expected %q", got, is, want)
		}
	}
	if text := suggest.DidYouMean("pluign", known); text != `, did you mean "plugin"?` {
		t.Errorf("got %q", text)
	}
	for _, got := range []string{"kube", "hang"} { // none is near; it is known
		if text := suggest.DidYouMean(got, known); text != "" {
			t.Errorf("%s: got %q", got, text)
		}
	}
}
