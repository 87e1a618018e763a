package history

import "testing"

func TestSuccession(t *testing.T) {
	of := func(pid int, state string) Process {
		return Process{Role: RoleReporter, Node: "cp-1", PID: pid, State: state, Detail: "exit code 0"}
	}
	for name, tt := range map[string]struct {
		changes  []Process
		replaced int // which of them is the end of one that has a successor; -1: none
	}{
		"restart":                {[]Process{of(1, ProcessStarted), of(1, ProcessStopped), of(2, ProcessStarted), of(2, ProcessKilled)}, -1},
		"surge":                  {[]Process{of(1, ProcessStarted), of(2, ProcessStarted), of(2, ProcessReady), of(1, ProcessStopped), of(2, ProcessStopped)}, 3},
		"the successor ends":     {[]Process{of(1, ProcessStarted), of(2, ProcessStarted), of(2, ProcessKilled)}, -1},
		"no PID":                 {[]Process{of(0, ProcessStarted), of(0, ProcessStarted), of(0, ProcessStopped)}, -1},
		"its start is not known": {[]Process{of(2, ProcessStarted), of(1, ProcessStopped)}, -1},
		"started again":          {[]Process{of(1, ProcessStarted), of(2, ProcessStarted), of(1, ProcessKilled), of(3, ProcessStarted), of(3, ProcessStopped)}, 2},
	} {
		var s Succession
		got := -1
		for i, p := range tt.changes {
			if s.Replaced(p) {
				got = i
			}
			if want := i >= 1 && name == "surge" && i < 3; want != s.Overlaps(p) && name == "surge" {
				t.Errorf("%s: change %d: overlaps %v", name, i, !want)
			}
		}
		if got != tt.replaced {
			t.Errorf("%s: change %d is taken for the end of one that has a successor, expected %d", name, got, tt.replaced)
		}
	}
	var s Succession
	other := of(1, ProcessStarted)
	s.Replaced(other)
	other.Node, other.PID = "cp-2", 2
	if s.Replaced(other); s.Overlaps(other) {
		t.Error("a process of another node is taken for a successor")
	}
}
