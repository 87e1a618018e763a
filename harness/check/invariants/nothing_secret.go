package invariants

import (
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeNothingSecret counts the logs that were searched, and fails for each find. The search runs after teardown, when
// no log grows any more, so its events come after the judged time and are read by EachRecorded.
func judgeNothingSecret(v *facts.Facts) (f Finding) {
	for e := range v.EachRecorded(history.KindSecrecy) {
		s := e.Secrecy
		if s.Lines == 0 || s.Values == 0 {
			continue
		}
		f.JudgedAt(e.At, e.At)
		if s.Form != "" {
			f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: s.Log + " holds the " + s.What + " of " + s.Object + " as " + s.Form, Allowed: "names, uids and digests"})
		}
	}
	return f
}
