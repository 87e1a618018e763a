package invariants

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/span"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// An entry that stands for several states of the CR is judged once, by its lastChecked.
func judgeTruthfulProbe(v *facts.Facts) (f Finding) {
	if v.Run.Observed {
		judgeKnown(v, &f)
		return f
	}
	for _, node := range v.Reports.Nodes() {
		judged := map[string]string{} // by keyID, lastChecked of the last entry that was judged
		flags := flagsOf(v, node)
		for _, s := range v.Reports.Own(node) {
			if s.Value.Problem != "" {
				continue
			}
			judgePlugins(v, &f, s, flags)
			for _, e := range s.Value.Written() {
				if judged[e.KeyID] != e.CheckedText {
					judged[e.KeyID] = e.CheckedText
					judgeEntry(v, &f, s, e)
				}
			}
		}
	}
	return f
}

// kekDue is when every API server has asked its plugin at least once more: they do each minute.
const kekDue = 2 * time.Minute

// judgeKnown judges reported kekIDs by those that API servers had, as their metrics say. A kekID that no API server had although all were asked, after it
// had been reported for long enough, is not the plugins'.
func judgeKnown(v *facts.Facts, f *Finding) {
	known := map[string]bool{}
	for e := range v.Each(history.KindKEKs) {
		for _, hash := range e.KEKs.Hashes {
			known[hash] = true
		}
	}
	if len(known) == 0 {
		return
	}
	type reported struct {
		kekID string
		since time.Time
	}
	for _, node := range v.Reports.Nodes() {
		last := map[string]reported{}
		for _, s := range v.Reports.Own(node) {
			for _, e := range s.Value.Written() {
				if e.KEKID != last[e.KeyID].kekID {
					last[e.KeyID] = reported{e.KEKID, s.From}
				}
				r := last[e.KeyID]
				hash := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.kekID)))
				switch {
				case r.kekID == "" || r.since.IsZero():
				case known[hash]:
					f.JudgedAt(s.From, s.From)
				case asked(v, r.since.Add(kekDue), s.From):
					f.JudgedAt(s.From, s.From)
					f.Violate(Violation{Rule: "kek-unknown", At: s.From, Seq: s.Seq, Node: node, KeyID: e.KeyID,
						Seen:    "kekID " + text.Quoted(r.kekID) + ", reported since " + text.Short(r.since.Sub(v.Period.From)) + ", which by their metrics no API server has from a plugin",
						Allowed: "what Status answers API servers"})
					last[e.KeyID] = reported{kekID: r.kekID}
				}
			}
		}
	}
}

// asked reports whether so many API servers were asked within a time as nodes are expected.
func asked(v *facts.Facts, from, to time.Time) bool {
	all := map[string]bool{}
	for e := range v.Each(history.KindKEKs) {
		if !e.At.Before(from) && !e.At.After(to) {
			all[e.KEKs.ID] = true
		}
	}
	return len(all) > 0 && len(all) >= len(v.Expectations.At(to).Nodes)
}

// flags are the plugins of a node that its reporter has in its flags from an instant on. A reporter takes no new sockets
// while it runs, so a change takes effect when its pod has been replaced.
type flags struct {
	from     time.Time
	keyIDs   []string
	reported time.Time // when a report had them first
}

func flagsOf(v *facts.Facts, node string) (out []flags) {
	for _, x := range v.Expectations {
		if n, ok := x.Nodes[node]; ok && len(n.KeyIDs) > 0 && (len(out) == 0 || !slices.Equal(out[len(out)-1].keyIDs, n.KeyIDs)) {
			out = append(out, flags{from: x.From, keyIDs: n.KeyIDs})
		}
	}
	return out
}

// judgePlugins: a report has an entry for each of its node's plugins, in the order of the flags. Those of older flags come from a second reporter of the
// node once a reporter with the newer ones has written, and the last write of its predecessor has had time to arrive.
func judgePlugins(v *facts.Facts, f *Finding, s facts.State[facts.Report], all []flags) {
	if len(all) == 0 {
		return
	}
	node, at := s.Value.Node, s.From
	var got []string
	for _, e := range s.Value.Written() {
		got = append(got, e.KeyID)
	}
	bad := func(rule string, want []string, why string) {
		f.Violate(Violation{Rule: rule, At: at, Seq: s.Seq, Node: node, Seen: "report about the plugins " + text.Quoted(strings.Join(got, ",")), Allowed: why + text.Quoted(strings.Join(want, ","))})
	}
	newest, known := 0, false
	for i, x := range all {
		known = known || slices.Equal(x.keyIDs, got)
		if !x.from.After(at) {
			newest = i
		}
	}
	for i := newest; i < len(all); i++ { // in force, or recorded later than it was
		if slices.Equal(all[i].keyIDs, got) {
			if all[i].reported.IsZero() {
				all[i].reported = at
			}
			return
		}
	}
	patience, current := v.CadenceMax()+v.Tolerance, all[newest]
	switch reported := !current.reported.IsZero(); {
	case !known:
		bad("plugins", all[len(all)-1].keyIDs, "one entry for each plugin, the write key first: ")
	case v.Reporters.Handovers(node).Contains(at):
	case !reported && newest > 0 && v.Processes.StartedIn(facts.Reporter(node), current.from, at.Add(-patience)):
		bad("plugins", current.keyIDs, "one entry for each plugin that the reporter was started with, the write key first: ")
	case reported && at.After(current.reported.Add(patience)):
		bad("", current.keyIDs, "one reporter of a node, with the plugins that it reported at "+text.Short(current.reported.Sub(v.Period.From))+": ")
	}
}

func judgeEntry(v *facts.Facts, f *Finding, s facts.State[facts.Report], e facts.Entry) {
	t := v.Plugins.Of(facts.PluginID{Node: s.Value.Node, KeyID: e.KeyID})
	at, known := v.Clocks.CheckedAt(s.Value.Node, e)
	if !known || t == nil || len(t.Probes) == 0 && len(t.Idle) == 0 && len(t.Opaque) == 0 || at.Before(v.Period.From.Add(v.ProbeTimeout+v.Tolerance)) {
		return // no journal, or from before it began
	}
	e.Checked = at
	f.JudgedAt(s.From, s.From)
	mismatch, rule, unusable := "", "", false
	for _, call := range t.CallsAt(e, s.From, v.Bounds) {
		mismatch, rule = compareEntry(v, e, call, s.Value)
		if mismatch == "" {
			return
		}
		unusable = unusable || call.BySource.Allow(e.Status)
	}
	when := span.New(at, at).Grow(v.Tolerance+1, e.Precision+v.ProbeTimeout+v.Tolerance)
	if e.Status == contract.StatusError && (t.Idle.Overlaps(when) || t.Opaque.Overlaps(when)) {
		return
	}
	seen := "entry " + string(e.Status) + " kekID " + text.Quoted(e.KEKID) + " detail " + text.Quoted(e.Detail) + " checked " + e.CheckedText
	allowed := "what the plugin answered then: " + mismatch
	if mismatch == "" {
		rule, seen, allowed = "no-call", seen+", when no Status call reached the plugin", "an entry after a Status call, with the time of that call as lastChecked"
		if len(t.Probes) == 0 {
			seen += "; none did in the whole run"
		}
		if e.Status == contract.StatusError {
			allowed += ": nothing kept one from the plugin (a connection in back-off makes none)"
		}
	}
	if unusable {
		rule = "unusable-ok"
	}
	timed := e.Status == contract.StatusError && strings.Contains(letters(e.Detail), "deadlineexceeded") // the reporter had no time for its probe
	f.Violate(Violation{Rule: rule, At: s.From, Seq: s.Seq, Node: t.Node, KeyID: t.KeyID, Timed: timed, Seen: seen, Allowed: allowed})
}

// compareEntry tells how the entry differs from what the call answered, empty if it does not, and the rule that is about such a difference.
func compareEntry(v *facts.Facts, e facts.Entry, c facts.Probe, r *facts.Report) (mismatch, rule string) {
	said := c.Outcome + " " + c.Code + " healthz " + text.Quoted(c.Healthz) + " key_id " + text.Quoted(c.KEKID) + " (event " + fmt.Sprint(c.Seq) + ")"
	if took := c.Ended.Sub(c.Began); c.Outcome == history.CallOK && c.Answers == facts.MayError {
		said += " after " + text.Short(took) + ", later than the deadline of a probe (" + text.Short(v.ProbeTimeout) + "): an error"
	}
	switch {
	case !c.Answers.Allow(e.Status):
		return said, ""
	case e.Status == contract.StatusError:
		if !rightCode(e.Detail, c) {
			return said + ", but the detail does not name its code", "error-code"
		}
		return "", ""
	case !sameKEK(e.KEKID, c.Call, len(r.Typed) > 0):
		return said + ", another kekID", "kek-id"
	case e.Status == contract.StatusUnhealthy && c.Healthz != "ok" && !records(e.Detail, c.Healthz):
		return said + ", but the detail does not tell its healthz", "healthz"
	}
	return "", ""
}

// sameKEK reports whether the kekID is the key_id as sent, or is left out where it is not usable. The typed form
// requires one and may then have an earlier one. The journal of a plugin cuts long key_ids, and both sides replace
// invalid bytes in their own way (squash).
func sameKEK(kekID string, c *history.Call, typed bool) bool {
	if c.KEKID == "" || facts.KEKBytes(c) > contract.MaxKEKIDBytes {
		return kekID == "" || typed
	}
	if len(c.KEKID) >= contract.MaxKEKIDBytes-utf8.UTFMax && kekID == "" {
		return true // perhaps cut by the journal
	}
	return squash(kekID) == squash(c.KEKID) || typed && c.Healthz != "ok" && utf8.RuneCountInString(c.KEKID) > contract.MaxKEKIDBytes
}

// squash makes two ways of replacing invalid bytes equal.
func squash(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

// rightCode reports whether the detail of an error names the gRPC code that the plugin sent, in any spelling
// ("Unavailable", "UNAVAILABLE"). Where the caller gave up first, or the answer could not be delivered, the plugin does
// not know which code the caller saw.
func rightCode(detail string, c facts.Probe) bool {
	if c.Outcome != history.CallError || c.Answers != facts.MayError || c.Code == "" || c.Code == "OK" {
		return detail != ""
	}
	return strings.Contains(letters(detail), letters(c.Code)) || strings.Contains(letters(detail), "deadline")
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// records reports whether the first words of the text are in the detail. Only ASCII words count, and five of them: a
// reporter may replace control characters and cut the text. An empty text needs none.
func records(detail, text string) bool {
	if detail == "" {
		return text == ""
	}
	plain := func(r rune) bool { return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	words := strings.FieldsFunc(text[:min(len(text), 200)], func(r rune) bool { return !plain(r) })
	for i, w := range words {
		if i == 5 || i == len(words)-1 && len(text) > 200 {
			break // the last word may be cut
		}
		if !strings.Contains(detail, w) {
			return false
		}
	}
	return true
}
