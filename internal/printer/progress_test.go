package printer

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A terminal has one line that changes, a log a line now and then.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	for _, terminal := range []bool{true, false} {
		var b bytes.Buffer
		p := &Progress{w: &b, terminal: terminal, now: func() time.Time { return now }, last: now}
		for range 100 {
			now = now.Add(time.Second)
			p.Show("one more")
		}
		p.Done()
		lines, rewrites := strings.Count(b.String(), "\n"), strings.Count(b.String(), "\r")
		if terminal && (lines != 0 || rewrites < 100) || !terminal && (lines != 10 || rewrites != 0) {
			t.Errorf("terminal %v: %d lines, %d times from its beginning", terminal, lines, rewrites)
		}
	}
}
