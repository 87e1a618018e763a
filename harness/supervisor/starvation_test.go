package supervisor_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	held "github.com/kmsharness/kmsharness/harness/record/supervisor"
)

// TestAStallIsInTheJournal: the supervisor itself gets no processor time for a while, as all of its container.
func TestAStallIsInTheJournal(t *testing.T) {
	const long = 600 * time.Millisecond
	c := run(t, newFolder(t), polite)
	c.said("up", 1)
	began := time.Now()
	c.signal(syscall.SIGSTOP)
	<-time.After(long)
	c.signal(syscall.SIGCONT)
	until(t, "a stall of that length", func() bool {
		text, _ := os.ReadFile(c.file("journal"))
		for line := range strings.Lines(string(text)) {
			if !strings.HasSuffix(line, "\n") {
				break // it is just being written
			}
			change, err := held.Decode([]byte(line))
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			// The last beat before the signal, and the tick after it, take up to a beat each.
			if s := change.Starvation; s != nil && s.To.Sub(s.From) >= long-100*time.Millisecond && s.To.After(began.Add(long)) {
				return true
			}
		}
		return false
	})
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	same(t, "changes", c.journal(), "started stopped")
}
