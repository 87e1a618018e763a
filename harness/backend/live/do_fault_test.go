package live

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPluginIsAskedWhileItRuns(t *testing.T) {
	hungUp := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		runs, fails int // how often it is found running, and how many requests fail
		asked       int
		want        error
	}{
		"answers":                 {1000, 0, 1, nil},
		"paused for a moment":     {1000, 3, 4, nil},
		"has ended":               {0, 0, 0, nil},
		"stopped meanwhile":       {2, 1000, 2, nil},
		"runs and does not do it": {1000, 1000, 100, hungUp},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looked, asked := 0, 0
				err := whileRunning(t.Context(), func() bool { looked++; return looked <= c.runs }, func() error {
					if asked++; asked <= c.fails {
						return hungUp
					}
					return nil
				})
				if asked != c.asked || !errors.Is(err, c.want) {
					t.Errorf("asked %d times, error %v: expected %d, %v", asked, err, c.asked, c.want)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 120*time.Millisecond)
		defer cancel()
		if err := whileRunning(ctx, func() bool { return true }, func() error { return hungUp }); !errors.Is(err, hungUp) {
			t.Errorf("ended before: error %v, expected %v", err, hungUp)
		}
	})
}
