package local

import "github.com/kmsharness/kmsharness/harness/backend/live"

// keep remembers an environment that was released to be looked at; it runs until Close.
func (b *Backend) keep(e *live.Environment) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, e)
}

// Kept is the environments that were left running, in the order of their release.
func (b *Backend) Kept() []*live.Environment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*live.Environment(nil), b.kept...)
}
