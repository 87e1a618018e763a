package core

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/kmsharness/kmsharness/contract"
)

// crs draws CRs that differ from each other in little: messages that are good, bad or long, lists of other shapes, nodes that come
// and go, typed items beside conditions.
func crs(t *rapid.T) map[string]any {
	messages := rapid.SampledFrom([]string{"", "[]", "x", `[{"keyID":"1","status":"healthy","lastChecked":"2026-05-08T12:00:00Z"}]`,
		`[{"keyID":"1","status":"healthy","lastChecked":"2026-05-08T12:00:30Z"},{"keyID":"2","status":"error","lastChecked":"2026-05-08T12:00:30Z","detail":"no"}]`})
	kinds := rapid.SampledFrom([]string{"", contract.ConditionType("a"), contract.ConditionType("b"), contract.ConditionType("c"), "KMSPluginsDegraded"})
	times := rapid.SampledFrom([]any{"2026-05-08T12:00:00Z", "2026-05-08T13:00:00+01:00", "yesterday", nil, int64(7)})
	condition := rapid.Custom(func(t *rapid.T) any {
		if rapid.IntRange(0, 20).Draw(t, "shape") == 0 {
			return "no object"
		}
		return map[string]any{"type": kinds.Draw(t, "type"), "status": "True", "message": messages.Draw(t, "message"), "lastTransitionTime": times.Draw(t, "time")}
	})
	item := rapid.Custom(func(t *rapid.T) any {
		return map[string]any{"nodeName": rapid.SampledFrom([]string{"", "a", "d"}).Draw(t, "node"), "keyID": rapid.SampledFrom([]string{"1", "2"}).Draw(t, "key"),
			"status": rapid.SampledFrom([]string{"Healthy", "Error", "?"}).Draw(t, "status"), "lastCheckedTime": "2026-05-08T12:00:10Z", "remoteKeyID": "k"}
	})
	return map[string]any{"status": map[string]any{
		"conditions":       rapid.SliceOfN(condition, 0, 5).Draw(t, "conditions"),
		"encryptionStatus": map[string]any{"healthReports": rapid.SliceOfN(item, 0, 3).Draw(t, "items")},
	}}
}

// What a Reader gives does not depend on what it has read before.
func TestReaderForgetsNothingAndKeepsNothing(t *testing.T) {
	op := Operators()[0]
	rapid.Check(t, func(t *rapid.T) {
		var r Reader
		for range rapid.IntRange(1, 6).Draw(t, "reads") {
			cr := crs(t)
			got, want := r.Read(cr, op), Read(cr, op)
			if !reflect.DeepEqual(got.Conditions, want.Conditions) || !reflect.DeepEqual(got.Reports, want.Reports) {
				t.Fatalf("got  %+v\nwant %+v", got, want)
			}
		}
	})
}
