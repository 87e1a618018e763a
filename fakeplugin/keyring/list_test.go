package keyring

import (
	"testing"
	"time"
)

// TestListIsOfItsTime: who got a list keeps it as it was, and the next one sees every change.
func TestListIsOfItsTime(t *testing.T) {
	r := newRing(t, 2)
	before := r.List()
	if _, err := r.SetState(1, Disabled, nil); err != nil {
		t.Fatal(err)
	}
	if now := r.List(); before[0].State != Enabled || now[0].State != Disabled {
		t.Errorf("version 1 was %v and is %v, expected enabled and disabled", before[0].State, now[0].State)
	}
	if _, err := r.Rotate(time.Now()); err != nil {
		t.Fatal(err)
	}
	if now := r.List(); len(before) != 2 || len(now) != 3 {
		t.Errorf("%d versions before and %d after a rotation, expected 2 and 3", len(before), len(now))
	}
}
