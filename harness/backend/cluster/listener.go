package cluster

import (
	"sync"
	"time"
)

// listener passes what happens to processes on to the scenario that runs, if there is one.
type listener struct {
	hearing sync.Mutex
	hears   func(at time.Time, payload any)
}

// Listen implements live.ControlPlane.
func (l *listener) Listen(f func(at time.Time, payload any)) {
	l.hearing.Lock()
	defer l.hearing.Unlock()
	l.hears = f
}

func (l *listener) record(at time.Time, payload any) {
	l.hearing.Lock()
	f := l.hears
	l.hearing.Unlock()
	if f != nil {
		f(at, payload)
	}
}
