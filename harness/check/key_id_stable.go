package check

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func keyIDStable() Invariant {
	return Invariant{
		ID:        "KEY-ID-STABLE",
		Statement: "the key_id that a plugin answers never returns to an earlier value",
		Source:    "KMS v2 API: key_id is stable, never re-used, and Status is authoritative (docs/decisions/0007-invariants-and-verdicts.md)",
		Judge:     judgeKeyIDStable,
	}
}

// judgeKeyIDStable looks at each plugin's answers in the order of the history. A key_id that comes back after
// another one makes kube-apiserver rewrite everything again and again, and no rotation ever converges.
func judgeKeyIDStable(v *Facts) (f Finding) {
	now, left := map[plugin]string{}, map[plugin]map[string]bool{}
	for n := range v.events {
		e := &v.events[n]
		if e.Kind != history.KindCall || e.Call.Outcome != history.CallOK || !usableKeyID(e.Call) {
			continue // an unusable key_id names no key; the reporter must call the plugin unhealthy for it
		}
		c, p := e.Call, plugin{e.Call.Node, e.Call.KeyID}
		f.JudgedAt(e.At, e.At)
		if c.KEKID == now[p] {
			continue
		}
		if left[p] == nil {
			left[p] = map[string]bool{}
		}
		if left[p][c.KEKID] {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: c.Node, KeyID: c.KeyID,
				Seen:    c.Method + " answered key_id " + quoted(c.KEKID) + " again, after " + quoted(now[p]),
				Allowed: "the current key_id, or one that was never used before"})
		}
		left[p][now[p]] = true
		now[p] = c.KEKID
	}
	return f
}

// usableKeyID says whether KMS v2 accepts the key_id that was answered.
func usableKeyID(c *history.Call) bool {
	return c.KEKID != "" && max(len(c.KEKID), c.KEKIDBytes) <= contract.MaxKEKIDBytes
}
