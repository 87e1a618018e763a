package cli

import "testing"

// A line of the suite that ends a scenario is counted.
func TestCounted(t *testing.T) {
	count := counting(3)
	for _, c := range [][2]string{
		{"plugin-hangs                             passed in 4.1s", "1 of 3  plugin-hangs                             passed in 4.1s"},
		{"slow                                     booting etcd", "        slow                                     booting etcd"},
		{"slow                                     COULD NOT RUN in 9.0s", "2 of 3  slow                                     COULD NOT RUN in 9.0s"},
		{"other                                    not supported", "3 of 3  other                                    not supported"},
	} {
		if got := count(c[0]); got != c[1] {
			t.Errorf("%q, want %q", got, c[1])
		}
	}
}
