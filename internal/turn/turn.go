// Package turn is a mutex that is held while something waits. In virtual time a goroutine that waits for a sync.Mutex stops the clock.
package turn

// Turn belongs to one at a time. New makes it.
type Turn chan struct{}

// New is a turn that is nobody's.
func New() Turn { return make(Turn, 1) }

// Lock waits for the turn.
func (t Turn) Lock() { t <- struct{}{} }

// Unlock gives it back.
func (t Turn) Unlock() { <-t }
