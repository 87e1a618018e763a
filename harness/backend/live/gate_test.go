package live

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestGateHoldsBackUntilTheHeading(t *testing.T) {
	log := history.NewLog(nil)
	g := newGate(log, false)
	at := time.Unix(1, 0)
	g.Record(at, "backend", &history.Process{Role: "etcd"})
	g.Flush()
	if n := len(log.Events()); n != 0 {
		t.Fatalf("%d events before the heading", n)
	}
	log.Record(at, "engine", &history.Run{})
	g.Flush()
	g.Record(at, "backend", &history.Process{Role: "apiserver"})
	g.close()
	g.Record(at, "backend", &history.Process{Role: "late"})
	var kinds []string
	for _, e := range log.Events() {
		kinds = append(kinds, string(e.Kind))
	}
	if len(kinds) != 3 || kinds[0] != "run" || log.Events()[1].Process.Role != "etcd" {
		t.Fatalf("recorded %v, want run, etcd, apiserver", kinds)
	}
}
