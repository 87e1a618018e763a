package check

import (
	"slices"
	"sort"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func truthfulProbe() Invariant {
	return Invariant{
		ID:        "TRUTHFUL-PROBE",
		Statement: "each reported entry matches what that plugin's journal says it answered at lastChecked: status, kekID, kind of error",
		Source:    "The reporter, outcome of a probe",
		Rules: []Rule{
			{Code: rulePlugins, Statement: "a report has one entry for each plugin of the flags, in their order"},
			{Code: ruleLastChecked, Statement: "at lastChecked the plugin was called"},
			{Code: ruleKEKID, Statement: "kekID is the key_id that the plugin sent"},
			{Code: ruleErrorCode, Statement: "the detail of an error names its code"},
			{Code: ruleHealthz, Statement: "the detail of an unhealthy plugin has its healthz"},
			{Code: ruleUnusable, Statement: "an ok with a key_id that cannot be used, or with another version, is unhealthy", House: true},
		},
		Timed: SomeTimed,
		Judge: judgeTruthfulProbe,
	}
}

func judgeTruthfulProbe(v *Facts) (f Finding) {
	for _, node := range v.objects.reportingNodes() {
		judged := map[plugin]string{} // lastChecked of the last entry that was judged
		flags := v.expectations.flagsOf(node)
		for _, c := range v.objects.reports[node] {
			if c.rep == nil || c.rep.foreign || c.rep.problem != "" {
				continue
			}
			judgePlugins(v, &f, c, flags)
			for _, e := range c.rep.entries {
				p := plugin{node, e.keyID}
				if judged[p] == e.checkedText {
					continue
				}
				judged[p] = e.checkedText
				judgeEntry(v, &f, c, p, e)
			}
		}
	}
	return f
}

// flags are the plugins of a node that its reporter has in its flags from an instant on.
type flags struct {
	from     time.Time
	keyIDs   []string
	reported time.Time // when a report had them first
}

func (xs *expectations) flagsOf(node string) (out []flags) {
	for _, x := range xs.all {
		if n, ok := x.nodes[node]; ok && len(n.KeyIDs) > 0 && (len(out) == 0 || !slices.Equal(out[len(out)-1].keyIDs, n.KeyIDs)) {
			out = append(out, flags{from: x.from, keyIDs: n.KeyIDs})
		}
	}
	return out
}

// judgePlugins: a report has an entry for each of its node's plugins, in the order of the flags. Those of older flags come from a second reporter of the
// node once a reporter with the newer ones has written, and the last write of its predecessor has had time to arrive.
func judgePlugins(v *Facts, f *Finding, c reportChange, all []flags) {
	var got []string
	for _, e := range c.rep.entries {
		got = append(got, e.keyID)
	}
	bad := func(rule string, want []string, why string) {
		f.Violate(Violation{Rule: rule, At: c.at, Seq: c.seq, Node: c.rep.node, Seen: "report about the plugins " + quoted(joined(got, ",")), Allowed: why + quoted(joined(want, ","))})
	}
	current, known := 0, len(all) == 0
	for i, x := range all {
		known = known || slices.Equal(x.keyIDs, got)
		if !x.from.After(c.at) {
			current = i
		}
	}
	for i := current; i < len(all); i++ { // in force, or recorded later than it was
		if slices.Equal(all[i].keyIDs, got) {
			if all[i].reported.IsZero() {
				all[i].reported = c.at
			}
			return
		}
	}
	switch {
	case !known:
		bad(rulePlugins, all[len(all)-1].keyIDs, "one entry for each plugin, the write key first: ")
	case current > 0 && all[current].reported.IsZero() && !overlap(v, c.rep.node).has(c.at) &&
		v.processes.startedIn(process{role: history.RoleReporter, node: c.rep.node}, all[current].from, c.at.Add(-v.run.Timing.CadenceMax()-v.tolerance())):
		bad(rulePlugins, all[current].keyIDs, "one entry for each plugin that the reporter was started with, the write key first: ")
	case len(all) > 0 && !all[current].reported.IsZero() && !overlap(v, c.rep.node).has(c.at) &&
		c.at.After(all[current].reported.Add(v.run.Timing.CadenceMax()+v.tolerance())):
		bad("", all[current].keyIDs, "one reporter of a node, with the plugins that it reported at "+short(all[current].reported.Sub(v.complete.from))+": ")
	}
}

func judgeEntry(v *Facts, f *Finding, c reportChange, p plugin, e entry) {
	t := v.plugins.all[p]
	at, clear := v.clocks.instant(p.node, e)
	if !clear {
		return
	}
	e.checked = at
	if t == nil || len(t.probes) == 0 && len(t.idle) == 0 && len(t.opaque) == 0 || e.checked.Before(v.complete.from.Add(v.run.Timing.ProbeTimeout+v.tolerance())) {
		return // no journal, or from before it began
	}
	f.JudgedAt(c.at, c.at)
	calls := v.plugins.callsAt(t, e, c.at)
	mismatch, rule, unusable := "", "", false
	for _, call := range calls {
		mismatch, rule = compareEntry(v, e, call, c.rep)
		if mismatch == "" {
			return
		}
		unusable = unusable || call.bySource.allow(e.status)
	}
	when := span{e.checked.Add(-v.tolerance() - 1), e.checked.Add(e.precision + v.run.Timing.ProbeTimeout + v.tolerance())}
	if e.status == contract.StatusError && (t.idle.touches(when) || t.opaque.touches(when)) {
		return
	}
	seen := "entry " + string(e.status) + " kekID " + quoted(e.kekID) + " detail " + quoted(e.detail) + " checked " + e.checkedText
	if mismatch == "" {
		mismatch, rule = "the plugin's journal has no Status call at that time", ruleLastChecked
		if e.status == contract.StatusError {
			mismatch += " and nothing kept one from it"
		}
	}
	if unusable {
		rule = ruleUnusable
	}
	timed := e.status == contract.StatusError && strings.Contains(letters(e.detail), "deadlineexceeded") // the reporter had no time for its probe
	f.Violate(Violation{Rule: rule, At: c.at, Seq: c.seq, Node: p.node, KeyID: p.keyID, timed: timed, Seen: seen, Allowed: "what the plugin answered then: " + mismatch})
}

// callsAt are the calls that may be the probe of e: lastChecked lies in them, give or take transport (a call may
// reach the plugin up to one deadline after the probe began) and precision. What began after the report was there is another probe.
func (pl *pluginFacts) callsAt(t *pluginTruth, e entry, reported time.Time) []probe {
	from, to := e.checked.Add(-pl.facts.tolerance()), earliest(reported, e.checked.Add(e.precision+pl.facts.run.Timing.ProbeTimeout+pl.facts.tolerance()))
	end := sort.Search(len(t.probes), func(i int) bool { return t.probes[i].Began.After(to) })
	var out []probe
	for i := end - 1; i >= 0 && !t.endedBefore(i, from); i-- {
		if !t.probes[i].Ended.Before(from) {
			out = append(out, t.probes[i])
		}
	}
	return out
}

// endedBefore says whether all calls up to i had ended before t.
func (p *pluginTruth) endedBefore(i int, t time.Time) bool {
	if p.ended == nil {
		p.ended = make([]time.Time, len(p.probes))
		for n, c := range p.probes {
			p.ended[n] = c.Ended
			if n > 0 {
				p.ended[n] = latest(p.ended[n], p.ended[n-1])
			}
		}
	}
	return p.ended[i].Before(t)
}

// compareEntry says how the entry differs from what the call answered, empty if it does not, and the rule that is about such a difference.
func compareEntry(v *Facts, e entry, c probe, r *report) (mismatch, rule string) {
	said := c.Outcome + " " + c.Code + " healthz " + quoted(c.Healthz) + " key_id " + quoted(c.KEKID) + " (event " + number(c.seq) + ")"
	if took := c.Ended.Sub(c.Began); c.Outcome == history.CallOK && c.answers == mayError {
		said += " after " + short(took) + ", later than the deadline of a probe (" + short(v.run.Timing.ProbeTimeout) + "): an error"
	}
	switch {
	case !c.answers.allow(e.status):
		return said, ""
	case e.status == contract.StatusError:
		if !rightCode(e.detail, c) {
			return said + ", but the detail does not name its code", ruleErrorCode
		}
		return "", ""
	case !sameKEK(e.kekID, c.Call, len(r.typed) > 0):
		return said + ", another kekID", ruleKEKID
	case e.status == contract.StatusUnhealthy && c.Healthz != "ok" && !records(e.detail, c.Healthz):
		return said + ", but the detail does not tell its healthz", ruleHealthz
	}
	return "", ""
}

// sameKEK: the kekID is carried verbatim, or left out where it is not usable. The typed form requires one and may
// then hold an earlier one.
func sameKEK(kekID string, c *history.Call, typed bool) bool {
	if c.KEKID == "" || kekBytes(c) > contract.MaxKEKIDBytes {
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

// rightCode: the detail of an error names the gRPC code that the plugin sent. Where the caller gave up first, or the
// answer could not be delivered, the plugin does not know which code the caller saw.
func rightCode(detail string, c probe) bool {
	if c.Outcome != history.CallError || c.answers != mayError || c.Code == "" || c.Code == "OK" {
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

// records reports whether the first words of the text stand in the detail. An empty text needs none.
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
