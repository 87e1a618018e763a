package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/backend/sim/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEventsRunInOrder(t *testing.T) {
	k := kernel.New(start, 1)
	var got []string
	note := func(s string) func() { return func() { got = append(got, s) } }
	k.After(2*time.Second, note("c"))
	k.After(time.Second, note("a"))
	k.After(time.Second, func() { note("b")(); k.After(-time.Hour, note("b'")) })
	k.After(time.Second, note("never")).Stop()
	k.After(time.Hour, note("later"))
	k.RunUntil(start.Add(3 * time.Second))
	if want := []string{"a", "b", "b'", "c"}; !slices.Equal(got, want) || k.Now() != start.Add(3*time.Second) || k.Events() != 4 {
		t.Errorf("%v at %v after %d events, expected %v", got, k.Now(), k.Events(), want)
	}
}

func TestQueueIsAHeap(t *testing.T) {
	k := kernel.New(start, 7)
	var got []time.Duration
	for range 1000 {
		d := k.Between(0, time.Minute)
		k.After(d, func() { got = append(got, k.Now().Sub(start)) })
	}
	k.RunUntil(start.Add(time.Hour))
	if len(got) != 1000 || !slices.IsSorted(got) {
		t.Errorf("%d events, sorted %v", len(got), slices.IsSorted(got))
	}
}

func TestTasksTakeTurns(t *testing.T) {
	k := kernel.New(start, 1)
	defer k.Close()
	var got []string
	for i := range 3 {
		k.Go(func() {
			for n := range 2 {
				got = append(got, fmt.Sprint(i, n))
				if err := k.Sleep(time.Second); err != nil {
					t.Error(err)
				}
			}
		})
	}
	k.Join()
	if want := []string{"0 0", "1 0", "2 0", "0 1", "1 1", "2 1"}; !slices.Equal(got, want) || k.Now() != start.Add(2*time.Second) {
		t.Errorf("%q at %v, expected %q", got, k.Now(), want)
	}
}

func TestSuspendOutsideOfATask(t *testing.T) {
	k := kernel.New(start, 1)
	if err := k.Sleep(time.Minute); err != nil || k.Now() != start.Add(time.Minute) {
		t.Errorf("%v at %v", err, k.Now())
	}
	if err := k.Suspend(func(done func()) { done() }); err != nil {
		t.Errorf("done at once: %v", err)
	}
	if err := k.Suspend(func(func()) {}); err == nil {
		t.Error("a wait for nothing ended well")
	}
}

func TestCloseEndsTasks(t *testing.T) {
	k := kernel.New(start, 1)
	var ended error
	k.Go(func() { ended = k.Suspend(func(func()) {}) })
	k.Close()
	if !errors.Is(ended, kernel.ErrClosed) || !errors.Is(k.Sleep(1), kernel.ErrClosed) {
		t.Errorf("a task that waited ended with %v", ended)
	}
}

func TestWait(t *testing.T) {
	k, ctx := kernel.New(start, 1), context.Background()
	k.After(time.Second, k.Wake)
	k.After(3*time.Second, func() {})
	k.Wait(ctx, start.Add(time.Minute))
	if k.Now() != start.Add(time.Second) {
		t.Errorf("woken at %v", k.Now())
	}
	k.Wait(ctx, start.Add(2*time.Second))
	if k.Now() != start.Add(2*time.Second) {
		t.Errorf("waited until %v", k.Now())
	}
	k.Wait(ctx, start) // over
	ended, cancel := context.WithCancel(ctx)
	cancel()
	k.Wait(ended, time.Time{})
	if k.Now() != start.Add(2*time.Second) {
		t.Errorf("time went on to %v", k.Now())
	}
}

func TestClock(t *testing.T) {
	k := kernel.New(start, 1)
	c := k.Clock()
	once, many := c.NewTimer(time.Second), c.NewTicker(time.Second)
	k.RunUntil(start.Add(1500 * time.Millisecond))
	if at := <-once.C(); at != start.Add(time.Second) || c.Since(start) != 1500*time.Millisecond {
		t.Errorf("timer at %v", at)
	}
	<-many.C()
	k.RunUntil(start.Add(2500 * time.Millisecond))
	if at := <-many.C(); at != start.Add(2*time.Second) {
		t.Errorf("second tick at %v", at)
	}
	many.Stop()
	if once.Stop() || once.Reset(time.Second) || !once.Stop() {
		t.Error("a timer says wrongly whether it was on")
	}
}

func TestSameSeedSameDraws(t *testing.T) {
	draw := func(seed int64) (out []time.Duration) {
		k := kernel.New(start, seed)
		for range 100 {
			out = append(out, k.Between(time.Second, time.Minute))
		}
		return out
	}
	if !slices.Equal(draw(3), draw(3)) || slices.Equal(draw(3), draw(4)) {
		t.Error("draws do not follow the seed")
	}
}
