package core

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kmsharness/kmsharness/contract"
)

// FuzzReadCR feeds any JSON as the operator's CR through a step: nothing panics, a hostile neighbour hides nobody's
// failure, and everything that is written is safe and bounded.
func FuzzReadCR(f *testing.F) {
	for _, seed := range hostile() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cr string) {
		for _, op := range Operators() {
			w := newWorld(t, "cp-1", "cp-2")
			w.op = op
			if err := json.Unmarshal([]byte(cr), &w.cr); err != nil {
				return
			}
			in := w.input()
			d := Step(in, w.memory)
			_, _ = tryPatch(w.cr, RemovalPatch(w.cr, op, Removal{Nodes: []string{"cp-1", "cp-2"}, Conditions: contract.RollupTypes()}))
			for _, c := range append(d.Rollups, d.ClusterOperator...) {
				if !utf8.ValidString(c.Message) || utf8.RuneCountInString(c.Message) > contract.MaxRollupMessageChars || strings.ContainsRune(c.Message, 0) {
					t.Errorf("%s: unsafe message %q", c.Type, c.Message)
				}
			}
		}
	})
}

func hostile() []string {
	return []string{
		`{}`, `{"status":null}`, `{"status":[]}`, `{"status":{"conditions":7}}`, `{"status":{"conditions":[7,null,[],{}]}}`,
		`{"status":{"conditions":[{"type":"KMSHealthReporter_"},{"type":"KMSHealthReporter_cp-1","message":"["}]}}`,
		`{"status":{"conditions":[{"type":"KMSHealthReporter_cp-1","message":"[{\"keyID\":\"1\",\"status\":\"healthy\",\"lastChecked\":\"9999-12-31T23:59:59Z\"}]"}]}}`,
		`{"status":{"conditions":[{"type":"KMSHealthReporter_cp-1","message":"[{\"keyID\":\"1\",\"status\":\"error\",\"lastChecked\":\"2026-05-08T12:00:00Z\",\"detail\":\"\\u0000\\u202e\\n\"}]"}]}}`,
		`{"status":{"conditions":[{"type":"KMSPluginsDegraded","status":"True","lastTransitionTime":"yesterday"},{"type":"Degraded","status":3}]}}`,
		`{"status":{"encryptionStatus":{"healthReports":[{"nodeName":"cp-1","keyID":"1","status":"Sick","lastCheckedTime":"x"},{"nodeName":7},null]}}}`,
		`{"status":{"oauthAPIServer":{"encryptionStatus":{"healthReports":[{"nodeName":"cp-1","keyID":"1","status":"Error","lastCheckedTime":"2026-05-08T12:00:00Z","remoteKeyID":"unknown"}]}}}}`,
		`{"status":{"encryptionStatus":[]}}`,
	}
}

func TestHostileCRHidesNobody(t *testing.T) {
	for _, seed := range hostile() {
		w := newWorld(t, "cp-1", "cp-2")
		if err := json.Unmarshal([]byte(seed), &w.cr); err != nil {
			t.Fatal(err)
		}
		w.op = Operators()[0]
		w.cr["status"] = asObject(w.cr["status"])
		conditions, _ := w.status()["conditions"].([]any)
		w.status()["conditions"] = objectsOnly(conditions)
		w.report("cp-2", 0, failed("1", contract.StatusUnhealthy, "visible"))
		d := Step(w.input(), w.memory)
		if got, _ := find(d.Rollups, contract.ConditionDegraded); got.Reason != contract.ReasonPluginUnhealthy || !strings.Contains(got.Message, "cp-2/1: unhealthy: visible") {
			t.Errorf("%s: got %s %q", seed, got.Reason, got.Message)
		}
	}
}

func asObject(v any) map[string]any {
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

func objectsOnly(items []any) []any {
	var out []any
	for _, i := range items {
		if _, ok := i.(map[string]any); ok {
			out = append(out, i)
		}
	}
	return out
}

func TestOversizedMessageIsMalformedNotFatal(t *testing.T) {
	w := newWorld(t, "cp-1", "cp-2")
	w.message("cp-1", "["+strings.Repeat(" ", contract.MaxMessageBytes)+"]")
	w.report("cp-2", 0, healthy("1", "k"))
	check(t, w.step(), contract.ConditionDegraded, "Unknown/ReportMalformed")
}

// Both forms at once: each keyID keeps what was checked last, and the form written last gives the order.
func TestBothFormsAreMergedByKeyID(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.report("cp-1", 2*testInterval, healthy("1", "k"), failed("2", contract.StatusError, "old"))
	w.typedForm = true
	w.report("cp-1", 0, healthy("2", "l"))
	got := Read(w.cr, w.op).Reports["cp-1"].Entries
	if len(got) != 2 || got[0].KeyID != "2" || got[0].Status != contract.StatusHealthy || got[1].KeyID != "1" {
		t.Errorf("got %+v, want the newer answer for 2 first, then 1", got)
	}
}

func TestNewerAnswerReplacesAnOlderOneOfTheOtherForm(t *testing.T) {
	older := healthy("1", "k")
	older.LastChecked = noon()
	newer := failed("1", contract.StatusError, "x")
	newer.LastChecked = noon().Add(1)
	for _, order := range [][]contract.Entry{{older, newer}, {newer, older}} {
		if got := keepNewer(nil, order...); len(got) != 1 || got[0].Status != contract.StatusError {
			t.Errorf("got %+v, want the newer answer alone", got)
		}
	}
}

// One malformed typed item leaves the node's other plugin visible, but the report is not sound: no convergence.
func TestOneMalformedItemAmongGoodOnes(t *testing.T) {
	w := newWorld(t, "cp-1")
	w.typedForm = true
	w.report("cp-1", 0, healthy("1", "k"))
	encryption := w.status()["encryptionStatus"].(map[string]any)
	bad := map[string]any{"nodeName": "cp-1", "keyID": "2", "status": "Sick", "lastCheckedTime": "2026-05-08T12:00:00Z"}
	encryption["healthReports"] = append(encryption["healthReports"].([]any), bad)
	d := w.step()
	check(t, d, contract.ConditionDegraded, "Unknown/ReportMalformed")
	check(t, d, contract.ConditionAvailable, "Unknown/WriteKeyUnknown")
	check(t, d, contract.ConditionProgressing, "False/NotConverged")
	if _, _, ok := Converged(w.input()); ok {
		t.Error("converged in spite of a malformed item")
	}
}
