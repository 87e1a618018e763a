package canary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

type sink struct {
	start time.Time
	lines []string
}

func (s *sink) Record(at time.Time, source string, payload any) {
	l := payload.(*history.Link)
	s.lines = append(s.lines, fmt.Sprintf("%v %s %s>%s %s %s", at.Sub(s.start), source, l.From, l.To, l.Node, l.State))
}

// A failure counts from the beginning of the write that failed, a success from its answer; only changes are recorded.
func TestChangesAreRecorded(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	out := &sink{start: start}
	answers := []error{nil, errors.New("etcdserver: leader changed"), context.DeadlineExceeded, nil, nil}
	c := &Canary{Sink: out, Node: "cp-1", Timeout: time.Minute, Now: func() time.Time { return now }, Write: func(context.Context) error {
		now = now.Add(time.Second)
		err := answers[0]
		answers = answers[1:]
		return err
	}}
	for range 5 {
		c.once(context.Background())
	}
	want := []string{"1s canary apiserver>etcd cp-1 cut", "4s canary apiserver>etcd cp-1 ok"}
	if !slices.Equal(out.lines, want) {
		t.Errorf("%q, want %q", out.lines, want)
	}
}

// A write that the end of the run interrupts is no failure; one that takes too long is.
func TestTimeoutAndEnd(t *testing.T) {
	out := &sink{}
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	c := &Canary{Sink: out, Timeout: time.Millisecond, Now: time.Now, Write: hang}
	ctx, cancel := context.WithCancel(context.Background())
	c.once(ctx)
	if len(out.lines) != 1 {
		t.Errorf("a write that hangs: %q", out.lines)
	}
	c.broken, c.Timeout, out.lines = false, time.Minute, nil
	tick := make(chan time.Time, 1)
	tick <- time.Now()
	c.Write = func(ctx context.Context) error { cancel(); return hang(ctx) }
	c.Run(ctx, tick)
	if len(out.lines) != 0 {
		t.Errorf("the end of a run: %q", out.lines)
	}
	c.broken = true
	c.Run(ctx, nil)
	if len(out.lines) != 1 || c.broken {
		t.Errorf("the end of a run in which it could not write: %q", out.lines)
	}
}
