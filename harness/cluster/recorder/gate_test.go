package recorder

import (
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestGateHoldsBackUntilTheHeading(t *testing.T) {
	log := history.NewLog(nil)
	g := NewGate(log, false)
	at := time.Unix(1, 0)
	g.Record(at, "backend", &history.Process{Role: "etcd"})
	g.Flush()
	if n := len(log.Events()); n != 0 {
		t.Fatalf("%d events before the heading", n)
	}
	log.Record(at, "engine", &history.Run{})
	g.Flush()
	g.Record(at, "backend", &history.Process{Role: "apiserver"})
	g.Close()
	g.Record(at, "backend", &history.Process{Role: "late"})
	var kinds []string
	for _, e := range log.Events() {
		kinds = append(kinds, string(e.Kind))
	}
	if len(kinds) != 3 || kinds[0] != "run" || log.Events()[1].Process.Role != "etcd" {
		t.Fatalf("recorded %v, want run, etcd, apiserver", kinds)
	}
}

// What is recorded in one instant is ordered by what it is about, whichever API server's it is; events about one thing stay in their order.
func TestGateOrdersWhatIsAboutAPIServers(t *testing.T) {
	data := func(object, of string) any {
		d := &history.Data{Object: object}
		if of == "" {
			return d
		}
		return history.Of{APIServer: of, Payload: d}
	}
	for _, of := range []string{"", "oauth-apiserver"} {
		log := history.NewLog(nil)
		g := NewGate(log, true)
		at := time.Unix(1, 0)
		log.Record(at, "engine", &history.Run{})
		for _, object := range []string{"b", "a", "c"} {
			g.Record(at, "backend", data(object, of))
		}
		g.Flush()
		g.Close()
		var got string
		for _, e := range log.Events()[1:] {
			got += e.Data.Object
		}
		if got != "abc" {
			t.Errorf("of %q: %s, want abc", of, got)
		}
	}
}

// In virtual time, events of one instant are in an order of their own, whichever came first; those about one thing stay in theirs.
func TestGateOrdersAnInstant(t *testing.T) {
	at := time.Unix(1, 0)
	all := []held{
		{at, "audit/cp-1", &history.Request{AuditID: "b"}},
		{at, "audit/cp-1", &history.Request{AuditID: "a"}},
		{at, "journal/cp-1/1", &history.Call{UID: "d"}},
		{at, "journal/cp-1/1", &history.Call{UID: "c"}},
		{at, "log/cp-1", &history.Envelope{UID: "2", Op: "encrypt"}},
		{at, "log/cp-1", &history.Envelope{UID: "1"}},
		{at, "log/cp-1", &history.Envelope{UID: "2", Op: "use"}},
		{at.Add(-1), "watch", &history.Object{Name: "z"}},
	}
	for _, ordered := range []bool{true, false} {
		log := history.NewLog(nil)
		g := NewGate(log, ordered)
		g.pending = append(g.pending, all...)
		log.Record(at, "engine", &history.Run{})
		g.Close()
		var got string
		for _, e := range log.Events()[1:] {
			switch {
			case e.Request != nil:
				got += e.Request.AuditID
			case e.Call != nil:
				got += e.Call.UID
			case e.Envelope != nil:
				got += e.Envelope.UID + e.Envelope.Op
			default:
				got += e.Object.Name
			}
			got += " "
		}
		if want := map[bool]string{true: "z a b c d 1 2encrypt 2use ", false: "b a d c 2encrypt 1 2use z "}[ordered]; got != want {
			t.Errorf("ordered %v: %s, expected %s", ordered, got, want)
		}
	}
}
