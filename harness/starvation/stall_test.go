package starvation

import (
	"context"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Time { return start.Add(time.Duration(n) * time.Millisecond) }

func TestDetector(t *testing.T) {
	for name, c := range map[string]struct {
		wakings []int // in ms
		want    []Span
	}{
		"on the beat":         {[]int{0, 50, 100, 150}, nil},
		"a little late":       {[]int{0, 50, 249, 250, 300}, nil},
		"late":                {[]int{0, 50, 250, 300}, []Span{{ms(100), ms(250)}}},
		"the first is late":   {[]int{900, 950}, nil},
		"twice":               {[]int{0, 1050, 1100, 2000}, []Span{{ms(50), ms(1050)}, {ms(1150), ms(2000)}}},
		"the beat catches up": {[]int{0, 800, 801, 850}, []Span{{ms(50), ms(800)}}},
		"a clock set back":    {[]int{1000, 500, 550}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var d Detector
			var got []Span
			for _, n := range c.wakings {
				if s, stalled := d.Wake(ms(n)); stalled {
					got = append(got, s)
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestAClockThatIsSet: times of time.Now are compared by their monotonic readings.
func TestAClockThatIsSet(t *testing.T) {
	var d Detector
	now := time.Now()
	d.Wake(now)
	if s, stalled := d.Wake(now.Add(Every)); stalled {
		t.Errorf("stalled %v", s)
	}
	s, stalled := d.Wake(now.Add(Every + Every + Late))
	if !stalled || s.To.Sub(s.From) != Late {
		t.Errorf("%v %v", s, stalled)
	}
}

func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock := []time.Time{ms(0), ms(50), ms(700), ms(750)}
	now := func() time.Time {
		at := clock[0]
		clock = clock[1:]
		return at
	}
	beat, told, done := make(chan time.Time), make(chan Span, 1), make(chan struct{})
	go func() { defer close(done); Watch(ctx, beat, now, func(s Span) { told <- s }) }()
	for range 3 {
		beat <- time.Time{}
	}
	if s := <-told; s != (Span{ms(100), ms(700)}) {
		t.Errorf("told %v", s)
	}
	cancel()
	<-done
}
