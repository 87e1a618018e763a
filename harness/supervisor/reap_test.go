package supervisor

import "testing"

func TestDeadChild(t *testing.T) {
	for stat, want := range map[string]int{
		"12 (sleep) Z 1 12 12 0":     12,
		"13 (a) Z 9 (b) Z 1 13 13 0": 13, // the name is up to the program
		"12 (sleep) S 1 12 12 0":     0,
		"12 (sleep) Z 7 12 12 0":     0,
		"12 (sleep) Z":               0,
		"x (y) Z 1 ":                 0,
		"":                           0,
	} {
		if pid, ok := deadChild(stat, 1); pid != want || ok != (want != 0) {
			t.Errorf("%q: %d, %v", stat, pid, ok)
		}
	}
}
