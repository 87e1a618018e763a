package text

import (
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567 * time.Nanosecond: "1.235ms", -1234567 * time.Nanosecond: "-1.235ms", 1234567 * time.Microsecond: "1.235s", 12345 * time.Millisecond: "12.3s",
	} {
		if got := Short(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	if Count(1, "node") != "1 node" || Count(0, "node") != "0 nodes" {
		t.Error(Count(1, "node"), Count(0, "node"))
	}
}
