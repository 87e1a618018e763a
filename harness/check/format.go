package check

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/history"
)

func format() Invariant {
	return Invariant{
		ID:        "FORMAT",
		Statement: "every message is minified JSON in contract form, valid UTF-8 and within its bounds; status, reason and lastTransitionTime of a report are constant",
		Source:    "The reporter, condition; The typed form of the same report",
		Rules: []Rule{
			{Code: ruleCondition, Statement: "status and reason of the condition are constant"},
			{Code: ruleTransition, Statement: "lastTransitionTime is constant"},
			{Code: ruleMinified, Statement: "the message has no white space between tokens"},
			{Code: ruleTime, Statement: "lastChecked is an RFC 3339 instant with a zone"},
			{Code: ruleBound, Statement: "message and detail keep their bounds"},
			{Code: rulePrintable, Statement: "the detail is valid UTF-8 without control characters"},
			{Code: ruleDetail, Statement: "there is a detail exactly where a plugin is not healthy"},
			{Code: ruleErrorKEKID, Statement: "an error has no kekID"},
		},
		Judge: judgeFormat,
	}
}

func judgeFormat(v *Facts) (f Finding) {
	for _, node := range v.objects.reportingNodes() {
		transition, others := "", ""
		for _, c := range v.objects.reports[node] {
			if c.rep == nil || c.rep.cond == nil {
				transition = ""
			}
			if c.rep == nil || c.rep.foreign {
				if c.rep != nil && c.rep.cond != nil { // a reporter that starts keeps what it finds
					others = c.rep.cond.LastTransitionTime
				}
				continue
			}
			f.JudgedAt(c.at, c.at)
			bad := func(rule, seen, allowed string) {
				f.Violate(Violation{Rule: rule, At: c.at, Seq: c.seq, Node: node, Seen: seen, Allowed: allowed})
			}
			if cond := c.rep.cond; cond != nil {
				judgeCondition(cond, bad)
				if transition != "" && cond.LastTransitionTime != transition && cond.LastTransitionTime != others && !mayNotRead(v, node, c.at) {
					bad(ruleTransition, "lastTransitionTime moved from "+transition+" to "+quoted(cond.LastTransitionTime), "constant while the entry stands")
				}
				transition, others = cond.LastTransitionTime, ""
			}
			for _, t := range c.rep.typed {
				judgeTyped(t, bad)
			}
		}
	}
	for _, s := range v.objects.crs {
		if n := len(s.object.HealthReports); n > contract.MaxTypedReports {
			f.Violate(Violation{At: s.at, Seq: s.seq, Seen: number(int64(n)) + " typed reports", Allowed: "at most " + number(contract.MaxTypedReports)})
		}
	}
	return f
}

// violate adds a violation of a rule; of the rest of the invariant if that is empty.
type violate func(rule, seen, allowed string)

// ruleOf is the rule about a problem of an entry.
func ruleOf(problem string) string { return map[string]string{badTime: ruleTime}[problem] }

// mayNotRead says whether a reporter was forbidden to read the CR, since its last write: it then knows of no lastTransitionTime to keep.
func mayNotRead(v *Facts, node string, until time.Time) bool {
	forbidden := false
	for _, n := range v.requests.requestsOf[node] {
		switch r := v.requests.all[n]; {
		case !r.received.Before(until):
			return forbidden
		case r.Verb == "get":
			forbidden = r.Code == http.StatusForbidden
		}
	}
	return forbidden
}

func judgeCondition(c *history.Condition, bad violate) {
	if c.Status != contract.ReporterConditionStatus || c.Reason != contract.ReporterConditionReason {
		bad(ruleCondition, "condition says "+c.Status+"/"+quoted(c.Reason), contract.ReporterConditionStatus+"/"+contract.ReporterConditionReason+" always")
	}
	if _, _, ok := parseInstant(c.LastTransitionTime); !ok {
		bad(ruleTransition, "lastTransitionTime "+quoted(c.LastTransitionTime), "an RFC 3339 instant")
	}
	if len(c.Message) > contract.MaxMessageBytes || !utf8.ValidString(c.Message) {
		bad(ruleBound, "message of "+number(int64(len(c.Message)))+" bytes", "valid UTF-8 of at most "+number(contract.MaxMessageBytes)+" bytes")
		return
	}
	var small bytes.Buffer
	if err := json.Compact(&small, []byte(c.Message)); err != nil {
		bad("", "message is not JSON: "+quoted(c.Message), "a minified JSON array")
		return
	}
	if small.String() != c.Message {
		bad(ruleMinified, "message is not minified: "+quoted(c.Message), "JSON without white space between tokens")
	}
	judgeMessage(c.Message, bad)
}

func judgeMessage(message string, bad violate) {
	var items []json.RawMessage
	if json.Unmarshal([]byte(message), &items) != nil || len(items) == 0 || len(items) > contract.MaxEntries {
		bad("", "message "+quoted(message), "an array of 1 to "+number(contract.MaxEntries)+" entries")
		return
	}
	seen := map[string]bool{}
	for _, item := range items {
		keys, values := fields(item)
		if !inOrder(keys) {
			bad("", "entry with the fields "+quoted(joined(keys, ",")), "keyID, kekID, status, lastChecked, detail, in this order, each once and a string; no others")
			continue
		}
		if seen[values["keyID"]] {
			bad("", "keyID "+quoted(values["keyID"])+" occurs twice", "one entry for each keyID")
		}
		seen[values["keyID"]] = true
		_, hasKEK := values["kekID"]
		_, hasDetail := values["detail"]
		judgeFields(wire{values["keyID"], values["kekID"], values["status"], values["lastChecked"], values["detail"]}, hasKEK, hasDetail, bad)
	}
}

// fields reads an object's keys in their order; a value that is not a string has no place in an entry.
func fields(item json.RawMessage) (keys []string, values map[string]string) {
	values = map[string]string{}
	d := json.NewDecoder(bytes.NewReader(item))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, values
	}
	for d.More() {
		key, err := d.Token()
		var value string
		if err != nil || d.Decode(&value) != nil {
			return append(keys, "not a string"), values
		}
		k, _ := key.(string)
		keys, values[k] = append(keys, k), value
	}
	return keys, values
}

// inOrder: the required fields and no unknown ones, in the contract's order.
func inOrder(keys []string) bool {
	want := []string{"keyID", "kekID", "status", "lastChecked", "detail"}
	at := -1
	for _, k := range keys {
		i := slices.Index(want, k)
		if i <= at {
			return false
		}
		at = i
	}
	return slices.Contains(keys, "keyID") && slices.Contains(keys, "status") && slices.Contains(keys, "lastChecked")
}

func judgeFields(w wire, hasKEK, hasDetail bool, bad violate) {
	entry := "entry of keyID " + quoted(w.KeyID)
	_, problem := decodeEntry(w)
	healthy := w.Status == string(contract.StatusHealthy)
	switch {
	case problem != "":
		bad(ruleOf(problem), entry+": "+problem, "an entry in contract form")
	case hasKEK && (w.KEKID == "" || len(w.KEKID) > contract.MaxKEKIDBytes):
		bad("", entry+": kekID of "+number(int64(len(w.KEKID)))+" bytes", "1 to 1024 bytes, or no kekID")
	case healthy && !hasKEK:
		bad("", entry+": healthy without kekID", "the key_id that the plugin reported")
	case w.Status == string(contract.StatusError) && hasKEK:
		bad(ruleErrorKEKID, entry+": error with kekID "+quoted(w.KEKID), "no kekID: the plugin did not answer")
	}
	if !healthy && w.Detail == "" {
		bad(ruleDetail, entry+": not healthy and no detail", "1 to 1024 characters of detail")
	}
	judgeDetail(entry, w.Detail, healthy, hasDetail, bad)
}

func judgeDetail(entry, detail string, healthy, has bool, bad violate) {
	switch n := utf8.RuneCountInString(detail); {
	case healthy && has:
		bad(ruleDetail, entry+": healthy with detail "+quoted(detail), "no detail")
	case n > contract.MaxDetailChars:
		bad(ruleBound, entry+": detail of "+number(int64(n))+" characters", "at most 1024")
	case strings.ContainsFunc(detail, unicode.IsControl) || !utf8.ValidString(detail):
		bad(rulePrintable, entry+": detail with control characters or invalid UTF-8", "printable text")
	}
}

func judgeTyped(t contract.TypedReport, bad violate) {
	entry := "typed report " + quoted(t.NodeName+"/"+t.KeyID)
	if _, problem := decodeTyped(t); problem != "" {
		bad(ruleOf(problem), entry+": "+problem, "an item in contract form")
	}
	if n := utf8.RuneCountInString(t.RemoteKeyID); n == 0 || n > contract.MaxKEKIDBytes || !utf8.ValidString(t.RemoteKeyID) || strings.ContainsRune(t.RemoteKeyID, 0) {
		bad("", entry+": remoteKeyID "+quoted(t.RemoteKeyID), "1 to 1024 characters without NUL")
	}
	judgeDetail(entry, t.Detail, t.Status == "Healthy", t.Detail != "", bad)
}
