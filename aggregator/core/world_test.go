package core

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/contract"
)

const testInterval = 30 * time.Second

// noon is the instant of every test's first step; epoch is when its nodes were created, long before.
func noon() time.Time  { return time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC) }
func epoch() time.Time { return noon().Add(-24 * time.Hour) }

// world is an API server in a map: what the core reads, and where its decisions are carried out.
type world struct {
	t         testing.TB
	op        Operator
	now       time.Time
	nodes     map[string]time.Time
	active    bool
	cr        map[string]any
	co        []Condition
	memory    Memory
	decision  Decision
	writes    int
	typedForm bool
	union     contract.Union
}

// newWorld has the named nodes, created long ago, and an aggregator that ran long before noon.
func newWorld(t testing.TB, nodes ...string) *world {
	op, err := OperatorByName("kubeapiserver")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, op: op, now: noon(), nodes: map[string]time.Time{}, active: true, cr: map[string]any{}}
	for _, n := range nodes {
		w.nodes[n] = epoch()
	}
	w.memory = Memory{started: true, kmsSince: epoch()}
	for _, n := range nodes {
		w.memory.nodes = clone(w.memory.nodes, n, expectation{created: epoch(), since: epoch()})
	}
	return w
}

func clone[V any](m map[string]V, key string, value V) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}
	out[key] = value
	return out
}

func (w *world) input() Input {
	return Input{
		Now: w.now, Interval: testInterval, Nodes: w.nodes, KMSActive: w.active,
		Observed: Read(w.cr, w.op), ClusterOperator: w.co, Union: w.union,
	}
}

// step decides and carries everything out, removals through the real patch's own selection.
func (w *world) step() Decision {
	d := Step(w.input(), w.memory)
	w.memory, w.decision = d.Memory, d
	if d.WriteRollups {
		w.writes++
		for _, c := range d.Rollups {
			w.condition(c)
		}
	}
	if !d.Remove.Empty() {
		w.writes++
		w.cr = patched(w.t, w.cr, RemovalPatch(w.cr, w.op, d.Remove))
		w.memory = w.memory.Removed(d.Remove.Nodes...)
	}
	if d.WriteClusterOperator {
		w.writes++
		w.co = d.ClusterOperator
	}
	return d
}

func (w *world) status() map[string]any {
	status, ok := w.cr["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		w.cr["status"] = status
	}
	return status
}

func (w *world) condition(c Condition) {
	item := map[string]any{
		"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message,
		"lastTransitionTime": c.LastTransitionTime.Format(time.RFC3339),
	}
	items, _ := w.status()["conditions"].([]any)
	i := slices.IndexFunc(items, func(i any) bool { return i.(map[string]any)["type"] == c.Type })
	if i < 0 {
		w.status()["conditions"] = append(slices.Clone(items), item)
		return
	}
	items = slices.Clone(items)
	items[i] = item
	w.status()["conditions"] = items
}

// report stores a report in the world's wire form, checked age before now.
func (w *world) report(node string, age time.Duration, entries ...contract.Entry) {
	w.t.Helper()
	for i := range entries {
		entries[i].LastChecked = w.now.Add(-age)
	}
	if w.typedForm {
		w.typed(node, entries)
		return
	}
	message, err := contract.EncodeMessage(entries)
	if err != nil {
		w.t.Fatal(err)
	}
	w.message(node, message)
}

func (w *world) message(node, message string) {
	w.condition(Condition{Type: contract.ConditionType(node), Status: True, Reason: "AsExpected", Message: message, LastTransitionTime: epoch()})
}

func (w *world) typed(node string, entries []contract.Entry) {
	w.t.Helper()
	items, err := contract.Report{Node: node, Entries: entries}.Typed(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	encryption, _ := w.status()["encryptionStatus"].(map[string]any)
	old, _ := encryption["healthReports"].([]any)
	kept := slices.DeleteFunc(slices.Clone(old), func(i any) bool { return i.(map[string]any)["nodeName"] == node })
	w.status()["encryptionStatus"] = map[string]any{"healthReports": append(kept, jsonOf(w.t, items).([]any)...)}
}

func jsonOf(t testing.TB, v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// says is "Status/Reason" of one condition.
func says(conditions []Condition, conditionType string) string {
	c, ok := find(conditions, conditionType)
	if !ok {
		return ""
	}
	return c.Status + "/" + c.Reason
}

func healthy(keyID, kekID string) contract.Entry {
	return contract.Entry{KeyID: keyID, KEKID: kekID, Status: contract.StatusHealthy}
}

func failed(keyID string, status contract.Status, detail string) contract.Entry {
	return contract.Entry{KeyID: keyID, Status: status, Detail: detail}
}

func nodeNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("cp-%03d", i)
	}
	return out
}

// Read reads a CR with a new Reader.
func Read(cr map[string]any, op Operator) Observed { return new(Reader).Read(cr, op) }

// Converged says whether a rotation controller may go on: every expected node freshly reports the same healthy kekID
// for the same write keyID. A missing, stale or malformed node, or no expected node at all, means not converged.
func Converged(in Input) (keyID, kekID string, ok bool) {
	return converged(assess(in, Memory{}.remember(in)))
}
