package kind

import (
	"sync"
	"testing"
)

// TestNoExecBeginsInAPause: a pause waits until every exec has begun, and no exec begins until it is done.
func TestNoExecBeginsInAPause(t *testing.T) {
	var s starting
	first := s.exec()
	paused, went := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := s.pause(func() error { close(paused); <-went; return nil }); err != nil {
			t.Error(err)
		}
	})
	select {
	case <-paused:
		t.Error("paused while an exec began")
	default:
	}
	first()
	first() // begun, and ended
	<-paused
	if s.mu.TryRLock() {
		t.Error("an exec may begin in a pause")
		s.mu.RUnlock()
	}
	close(went)
	all.Wait()
	s.exec()()
}
