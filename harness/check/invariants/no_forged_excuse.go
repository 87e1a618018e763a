package invariants

import (
	"github.com/kmsharness/kmsharness/harness/check/facts"
)

func judgeNoForgedExcuse(v *facts.Facts) (f Finding) {
	for _, e := range v.Interruptions {
		f.JudgedAt(e.At, e.At)
		if !e.Forged {
			continue
		}
		want := "an action under way that ends it"
		if e.Pause {
			want = "an action under way that pauses it, its pod or its node"
		}
		p := e.Process
		f.Violate(Violation{At: e.At, Seq: e.Seq, Node: p.Node, KeyID: p.KeyID, Allowed: want,
			Seen: facts.ProcessOf(p).String() + " is " + p.State + ", and no action is under way that can have caused it"})
	}
	return f
}
