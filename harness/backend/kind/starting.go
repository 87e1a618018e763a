package kind

import "sync"

// starting keeps apart what the engine cannot have at the same time: a docker exec that begins, and a pause of its container. An exec that
// is frozen before it has begun keeps the engine waiting, with locks held, and nothing unpauses the container any more. The zero value
// is ready.
type starting struct{ mu sync.RWMutex }

// exec is called before an exec; begun, once it has begun, or has ended. Begun may be called again.
func (s *starting) exec() (begun func()) {
	s.mu.RLock()
	return sync.OnceFunc(s.mu.RUnlock)
}

// pause runs f while no exec begins.
func (s *starting) pause(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}
