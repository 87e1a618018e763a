package check

import "github.com/kmsharness/kmsharness/harness/history"

func nothingSecret() Invariant {
	return Invariant{
		ID:        "NOTHING-SECRET",
		Statement: "no log and no journal holds bytes of an object's value or of its stored form",
		Source:    "KEP-3130: what is logged with the uid is not sensitive (docs/decisions/0007-invariants-and-verdicts.md)",
		Judge:     judgeNothingSecret,
	}
}

// judgeNothingSecret counts the logs that were searched, and fails for each find.
func judgeNothingSecret(v *Facts) (f Finding) {
	for n := range v.all { // sums are recorded when all is over
		e := &v.all[n]
		if e.Kind != history.KindSecrecy || e.Secrecy.Lines == 0 || e.Secrecy.Values == 0 {
			continue
		}
		s := e.Secrecy
		f.JudgedAt(e.At, e.At)
		if s.Form == "" {
			continue
		}
		f.Violate(Violation{At: e.At, Seq: e.Seq, Seen: s.Log + " holds the " + s.What + " of " + s.Object + " as " + s.Form, Allowed: "names, uids and digests"})
	}
	return f
}
