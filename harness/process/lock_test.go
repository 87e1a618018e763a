package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

func TestLocksAreTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	waited := 0
	first, err := Lock(t.Context(), path, func() { waited++ })
	if err != nil || waited != 0 {
		t.Fatalf("%v, waited %d times: expected the first at once", err, waited)
	}
	second := make(chan *os.File)
	go func() {
		lock, err := Lock(t.Context(), path, func() { _ = first.Close() }) // the other ends when somebody waits
		if err != nil {
			t.Error(err)
		}
		second <- lock
	}()
	_ = (<-second).Close()
	third, err := Lock(t.Context(), path, func() { t.Error("waited for a lock that nobody has") })
	if err != nil {
		t.Fatal(err)
	}
	_ = third.Close()
}

func TestALockThatIsNeverFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*lockPoll)
		defer cancel()
		if lock, err := Lock(ctx, path, func() {}); lock != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: expected the end of the wait", err)
		}
	})
}
