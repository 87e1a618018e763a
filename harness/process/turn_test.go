package process

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
)

func TestTurnsAreTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turn")
	waited := 0
	first, err := takeTurn(t.Context(), path, func() { waited++ })
	if err != nil || waited != 0 {
		t.Fatalf("%v, waited %d times: expected the first at once", err, waited)
	}
	second := make(chan func())
	go func() {
		done, err := takeTurn(t.Context(), path, first) // the other ends when somebody waits
		if err != nil {
			t.Error(err)
		}
		second <- done
	}()
	done := <-second
	done()
	if third, err := takeTurn(t.Context(), path, func() { t.Error("waited for a turn that nobody has") }); err == nil {
		third()
	}
}

func TestATurnThatNeverComes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turn")
	done, err := takeTurn(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*turnPoll)
		defer cancel()
		if _, err := takeTurn(ctx, path, func() {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: expected the end of the wait", err)
		}
	})
}
