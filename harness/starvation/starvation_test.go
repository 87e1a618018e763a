package starvation

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

func TestLateWakings(t *testing.T) {
	for name, c := range map[string]struct {
		wakings []int // in ms
		want    []Span
	}{
		"in time":               {[]int{0, 50, 100, 150}, nil},
		"a little late":         {[]int{0, 50, 249, 250, 300}, nil},
		"late":                  {[]int{0, 50, 250, 300}, []Span{{0, ms(100), ms(250)}}},
		"twice":                 {[]int{0, 1050, 1100, 2000}, []Span{{0, ms(50), ms(1050)}, {0, ms(1150), ms(2000)}}},
		"the ticker catches up": {[]int{0, 800, 801, 850}, []Span{{0, ms(50), ms(800)}}},
		"a clock set back":      {[]int{1000, 500, 550}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Span
			w := Watch{Record: func(s Span) { got = append(got, s) }, woken: ms(c.wakings[0])}
			for _, n := range c.wakings[1:] {
				w.wake(ms(n))
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestAClockThatIsSet: times of time.Now are compared by their monotonic readings.
func TestAClockThatIsSet(t *testing.T) {
	var got []Span
	now := time.Now()
	w := Watch{Record: func(s Span) { got = append(got, s) }, woken: now}
	w.wake(now.Add(every))
	w.wake(now.Add(2*every + every + Late))
	if len(got) != 1 || got[0].To.Sub(got[0].From) < Late {
		t.Errorf("%v", got)
	}
}

// TestProcessesAreRead: one that has waited long since the last reading is recorded, and one that is gone is not.
func TestProcessesAreRead(t *testing.T) {
	waits(t)
	var got []Span
	self, nobody := os.Getpid(), 1<<30
	w := Watch{Processes: func() []int { return []int{self, nobody} }, Record: func(s Span) { got = append(got, s) }, woken: ms(0), read: ms(0)}
	wake := func(from, to int) {
		for n := from; n <= to; n += 50 {
			w.wake(ms(n))
		}
	}
	if wake(50, 500); len(got) != 0 {
		t.Errorf("the first reading: %v", got)
	}
	for id, u := range w.queues[self].threads {
		w.queues[self].threads[id] = usage{u.ran, u.waited - 200*time.Millisecond}
	}
	if wake(550, 950); len(got) != 0 {
		t.Errorf("before the period was over: %v", got)
	}
	if wake(1000, 1000); len(got) != 1 || got[0].PID != self || got[0].To != ms(1000) || got[0].To.Sub(got[0].From) < waited {
		t.Errorf("%v", got)
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan struct{}, 1)
	w := Watch{Record: func(Span) {}, Processes: func() []int {
		select {
		case read <- struct{}{}:
		default:
		}
		return nil
	}}
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	<-read
	cancel()
	<-done
}

func TestNamed(t *testing.T) {
	waits(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(self)
	name = name[:min(len(name), 15)] // the kernel keeps so much
	if pids := Named("nobody", name); !slices.Contains(pids, os.Getpid()) {
		t.Errorf("%s: %v lacks %d", name, pids, os.Getpid())
	}
	if pids := Named("nobody"); len(pids) > 0 {
		t.Errorf("%v", pids)
	}
}
