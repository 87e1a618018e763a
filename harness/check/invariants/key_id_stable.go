package invariants

import (
	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeKeyIDStable reads each plugin's answers in the order of the history. A key_id that comes back after
// another one makes kube-apiserver rewrite everything again and again, and no rotation ever converges.
// kube-apiserver compares the key_id of Status with that of each stored object to find stale ones (k8s.io/apiserver,
// kmsv2, and docs/decisions/0007). Plugins of one cluster may change at different times; each is judged by itself.
func judgeKeyIDStable(v *facts.Facts) (f Finding) {
	now, left := map[facts.PluginID]string{}, map[facts.PluginID]map[string]bool{}
	for e := range v.Each(history.KindCall) {
		c, p := e.Call, facts.PluginID{Node: e.Call.Node, KeyID: e.Call.KeyID}
		if c.Outcome != history.CallOK || c.KEKID == "" || facts.KEKBytes(c) > contract.MaxKEKIDBytes {
			continue // an unusable key_id names no key; the reporter must call the plugin unhealthy for it
		}
		f.JudgedAt(e.At, e.At)
		if c.KEKID == now[p] {
			continue
		}
		if left[p] == nil {
			left[p] = map[string]bool{}
		}
		if left[p][c.KEKID] {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Node: c.Node, KeyID: c.KeyID,
				Seen:    c.Method + " answered key_id " + text.Quoted(c.KEKID) + " again, after " + text.Quoted(now[p]),
				Allowed: "the current key_id, or one that was never used before"})
		}
		left[p][now[p]] = true
		now[p] = c.KEKID
	}
	return f
}
