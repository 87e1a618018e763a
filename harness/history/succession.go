package history

// Succession tells the end of a process from that of one whose successor was started before, as in a roll-out with surge: both are known by the
// same role and node. The zero value has seen nothing; it is told of every change of a process, in order.
type Succession struct {
	newest, before map[Process]int // PID
}

// Replaced takes a change, and reports whether it is the end of a process whose successor was started before it.
func (s *Succession) Replaced(p Process) bool {
	if s.newest == nil {
		s.newest, s.before = map[Process]int{}, map[Process]int{}
	}
	k, pid := p, p.PID
	k.PID, k.State, k.Detail = 0, "", ""
	switch p.State {
	case ProcessStarted:
		if old := s.newest[k]; old != 0 && old != pid {
			s.before[k] = old
		}
		s.newest[k] = pid
	case ProcessStopped, ProcessKilled, ProcessExited:
		if pid != 0 && pid == s.before[k] {
			delete(s.before, k)
			return true
		}
		delete(s.newest, k)
	}
	return false
}

// Overlaps reports whether a process of p's role and node was started before the one that p is the successor of has ended.
func (s *Succession) Overlaps(p Process) bool {
	p.PID, p.State, p.Detail = 0, "", ""
	return s.before[p] != 0
}
