package history

import (
	"testing"
	"time"
)

// A log that is kept where an earlier one was has nothing of that, and what was read of the earlier one is its own business.
func TestRoomIsUsedAgain(t *testing.T) {
	first := NewLog(nil)
	for range 3 * leastCapacity {
		first.Record(time.Time{}, "test", &Data{})
	}
	room := first.Buffer()
	if len(room) != 0 || cap(room) < 3*leastCapacity || len(first.Events()) != 0 || room[:1][0].Data != nil {
		t.Fatalf("%d of %d, and %d events are left", len(room), cap(room), len(first.Events()))
	}
	second := NewLogIn(nil, room)
	second.Record(time.Time{}, "test", &End{})
	if e := second.Events(); len(e) != 1 || e[0].Seq != 1 || e[0].End == nil {
		t.Errorf("%+v, expected one event of its own", e)
	}
}
