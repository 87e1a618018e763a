package sim

// turns lets tasks through one at a time, in the order in which they came.
type turns struct {
	taken   bool
	waiting []func()
}

func (t *turns) take(e *environment) error {
	if !t.taken {
		t.taken = true
		return nil
	}
	return e.w.k.Suspend(func(done func()) { t.waiting = append(t.waiting, done) })
}

// give passes it on, or back.
func (t *turns) give() {
	if len(t.waiting) == 0 {
		t.taken = false
		return
	}
	next := t.waiting[0]
	t.waiting = t.waiting[1:]
	next()
}
