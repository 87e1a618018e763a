package kind

import "testing"

func TestRoomForTwo(t *testing.T) {
	for limit, room := range map[string]bool{"128\n": false, "255": false, "256\n": true, "8192\n": true, "what": true} {
		if err := memoryForTwo(limit); (err == nil) != room {
			t.Errorf("limit %q: %v", limit, err)
		}
	}
}
