package invariants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/check/text"
	"github.com/kmsharness/kmsharness/harness/history"
)

// judgeFormat judges what the system under test wrote, by the form that readers may rely on. Readers must be more
// lenient (facts.DecodeMessage). The transition time may change once after a foreign write, which a reporter finds and
// keeps.
func judgeFormat(v *facts.Facts) (f Finding) {
	for _, node := range v.Reports.Nodes() {
		transition, others := "", ""
		for _, s := range v.Reports[node] {
			if s.Value == nil || s.Value.Condition == nil {
				transition = ""
			}
			if s.Value == nil || s.Value.Foreign {
				if s.Value != nil && s.Value.Condition != nil { // a reporter that starts keeps what it finds
					others = s.Value.Condition.LastTransitionTime
				}
				continue
			}
			f.JudgedAt(s.From, s.From)
			bad := func(rule, seen, allowed string) {
				f.Violate(Violation{Rule: rule, At: s.From, Seq: s.Seq, Node: node, Seen: seen, Allowed: allowed})
			}
			if c := s.Value.Condition; c != nil {
				judgeCondition(c, bad)
				if transition != "" && c.LastTransitionTime != transition && c.LastTransitionTime != others && !mayNotRead(v, node, s.From) {
					bad("transition-time", "lastTransitionTime moved from "+transition+" to "+text.Quoted(c.LastTransitionTime), "constant while the entry stands")
				}
				transition, others = c.LastTransitionTime, ""
			}
			for _, t := range s.Value.Typed {
				judgeTyped(t, bad)
			}
		}
	}
	for _, s := range v.CR.Snapshots {
		if n := len(s.Object.HealthReports); n > contract.MaxTypedReports {
			f.Violate(Violation{At: s.From, Seq: s.Seq, Seen: fmt.Sprint(n, " typed reports"), Allowed: fmt.Sprint("at most ", contract.MaxTypedReports)})
		}
	}
	return f
}

// violate adds a violation of a rule; of the rest of the invariant if that is empty.
type violate func(rule, seen, allowed string)

// ruleOf is the rule about a problem of an entry.
func ruleOf(problem string) string { return map[string]string{facts.BadTime: "last-checked"}[problem] }

// mayNotRead reports whether a reporter was forbidden to read the CR since its last write: it then knows of no
// lastTransitionTime to keep. An apply must name one all the same.
func mayNotRead(v *facts.Facts, node string, until time.Time) bool {
	forbidden := false
	for _, r := range v.Requests.Of[node] {
		switch {
		case !r.Received.Before(until):
			return forbidden
		case r.Verb == "get":
			forbidden = r.Code == http.StatusForbidden
		}
	}
	return forbidden
}

func judgeCondition(c *history.Condition, bad violate) {
	if c.Status != contract.ReporterConditionStatus || c.Reason != contract.ReporterConditionReason {
		bad("condition-status", "condition says "+c.Status+"/"+text.Quoted(c.Reason), contract.ReporterConditionStatus+"/"+contract.ReporterConditionReason+" always")
	}
	if _, _, ok := facts.ParseInstant(c.LastTransitionTime); !ok {
		bad("transition-time", "lastTransitionTime "+text.Quoted(c.LastTransitionTime), "an RFC 3339 instant")
	}
	if len(c.Message) > contract.MaxMessageBytes || !utf8.ValidString(c.Message) {
		bad("bound", "message of "+fmt.Sprint(len(c.Message))+" bytes", "valid UTF-8 of at most "+fmt.Sprint(contract.MaxMessageBytes)+" bytes")
		return
	}
	var small bytes.Buffer
	if err := json.Compact(&small, []byte(c.Message)); err != nil {
		bad("", "message is not JSON: "+text.Quoted(c.Message), "a minified JSON array")
		return
	}
	if small.String() != c.Message {
		bad("minified", "message is not minified: "+text.Quoted(c.Message), "JSON without white space between tokens")
	}
	judgeMessage(c.Message, bad)
}

// judgeMessage judges the entries by their raw JSON, since decoding into a struct would accept other orders, repeated
// fields and unknown ones. The order is that of the contract's example.
func judgeMessage(message string, bad violate) {
	var items []json.RawMessage
	if json.Unmarshal([]byte(message), &items) != nil || len(items) == 0 || len(items) > contract.MaxEntries {
		bad("", "message "+text.Quoted(message), "an array of 1 to "+fmt.Sprint(contract.MaxEntries)+" entries")
		return
	}
	seen := map[string]bool{}
	for _, item := range items {
		keys, values := fields(item)
		if !inOrder(keys) {
			bad("", "entry with the fields "+text.Quoted(strings.Join(keys, ",")), "keyID, kekID, status, lastChecked, detail, in this order, each once and a string; no others")
			continue
		}
		if seen[values["keyID"]] {
			bad("", "keyID "+text.Quoted(values["keyID"])+" occurs twice", "one entry for each keyID")
		}
		seen[values["keyID"]] = true
		_, hasKEK := values["kekID"]
		_, hasDetail := values["detail"]
		judgeFields(facts.WireEntry{KeyID: values["keyID"], KEKID: values["kekID"], Status: values["status"], LastChecked: values["lastChecked"], Detail: values["detail"]}, hasKEK, hasDetail, bad)
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

func judgeFields(w facts.WireEntry, hasKEK, hasDetail bool, bad violate) {
	entry := "entry of keyID " + text.Quoted(w.KeyID)
	_, problem := facts.DecodeEntry(w)
	healthy := w.Status == string(contract.StatusHealthy)
	switch {
	case problem != "":
		bad(ruleOf(problem), entry+": "+problem, "an entry in contract form")
	case hasKEK && (w.KEKID == "" || len(w.KEKID) > contract.MaxKEKIDBytes):
		bad("", entry+": kekID of "+fmt.Sprint(len(w.KEKID))+" bytes", "1 to 1024 bytes, or no kekID")
	case healthy && !hasKEK:
		bad("", entry+": healthy without kekID", "the key_id that the plugin reported")
	case w.Status == string(contract.StatusError) && hasKEK:
		bad("error-kek-id", entry+": error with kekID "+text.Quoted(w.KEKID), "no kekID: the plugin did not answer")
	}
	if !healthy && w.Detail == "" {
		bad("detail", entry+": not healthy and no detail", "1 to 1024 characters of detail")
	}
	judgeDetail(entry, w.Detail, healthy, hasDetail, bad)
}

func judgeDetail(entry, detail string, healthy, has bool, bad violate) {
	switch n := utf8.RuneCountInString(detail); {
	case healthy && has:
		bad("detail", entry+": healthy with detail "+text.Quoted(detail), "no detail")
	case n > contract.MaxDetailChars:
		bad("bound", entry+": detail of "+fmt.Sprint(n)+" characters", "at most 1024")
	case strings.ContainsFunc(detail, unicode.IsControl) || !utf8.ValidString(detail):
		bad("printable", entry+": detail with control characters or invalid UTF-8", "printable text")
	}
}

// judgeTyped judges an item of the typed form. Lengths are code points, as maxLength of the CRD counts them.
func judgeTyped(t contract.TypedReport, bad violate) {
	entry := "typed report " + text.Quoted(t.NodeName+"/"+t.KeyID)
	if _, problem := facts.DecodeTyped(t); problem != "" {
		bad(ruleOf(problem), entry+": "+problem, "an item in contract form")
	}
	if n := utf8.RuneCountInString(t.RemoteKeyID); n == 0 || n > contract.MaxKEKIDBytes || !utf8.ValidString(t.RemoteKeyID) || strings.ContainsRune(t.RemoteKeyID, 0) {
		bad("", entry+": remoteKeyID "+text.Quoted(t.RemoteKeyID), "1 to 1024 characters without NUL")
	}
	judgeDetail(entry, t.Detail, t.Status == "Healthy", t.Detail != "", bad)
}
