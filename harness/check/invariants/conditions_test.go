package invariants

import (
	"slices"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/check/facts"
	"github.com/kmsharness/kmsharness/harness/history"
)

// told is what happened at a second of a run.
type told struct {
	at   int
	what history.Event
}

func (x told) event(seq int) history.Event {
	e := x.what
	e.Seq, e.At = int64(seq), time.Date(2026, 5, 8, 12, 0, x.at, 0, time.UTC)
	switch {
	case e.Object != nil:
		e.Kind = history.KindObject
	case e.Encryption != nil:
		e.Kind = history.KindEncryption
	case e.StorageInventory != nil:
		e.Kind, e.StorageInventory.From = history.KindStorageInventory, e.At
	case e.Action != nil:
		e.Kind = history.KindAction
	case e.Expected != nil:
		e.Kind = history.KindExpected
	case e.Process != nil:
		e.Kind = history.KindProcess
	case e.Run != nil:
		e.Kind = history.KindRun
	case e.Refusal != nil:
		e.Kind = history.KindRefusal
	}
	return e
}

func says(at int, conditions ...string) told {
	o := &history.Object{Resource: "kubeapiservers.operator.openshift.io", Name: "cluster"}
	for _, c := range conditions {
		o.Conditions = append(o.Conditions, &history.Condition{Type: c, Status: "True", Reason: "x"})
	}
	return told{at, history.Event{Object: o}}
}

func asks(at int, kind string) told {
	return told{at, history.Event{Action: &history.Action{ID: kind, Verb: "apiserver", State: history.ActionBegan, Params: map[string]any{"type": kind}}}}
}

func encryption(at int, state, writer string) told {
	x := &history.Encryption{State: state, Providers: []string{writer, "identity"}}
	if state != history.EncryptionMigrated {
		x.Node = "cp-1"
	}
	return told{at, history.Event{Encryption: x}}
}

func lies(at int, under string) told {
	return told{at, history.Event{StorageInventory: &history.StorageInventory{Under: []history.Under{{Provider: under, Count: 3, Example: "secrets/ns/a"}}}}}
}

func acts(at int, verb, state string, params map[string]any) told {
	return told{at, history.Event{Action: &history.Action{ID: verb, Verb: verb, State: state, Params: params}}}
}

// toAESCBC is a switch that is over after 30 s, and operated how the history of an operator begins.
func toAESCBC(more ...told) []history.Event {
	all := slices.Concat([]told{
		{0, history.Event{Run: &history.Run{Operator: "kubeapiservers", Lifecycle: history.LifecycleOperator}}},
		{0, history.Event{Expected: &history.Expected{Nodes: []history.ExpectedNode{{Name: "cp-1"}}}}},
		{0, history.Event{Process: &history.Process{Role: history.RoleOperator, State: history.ProcessReady}}},
		{0, history.Event{Process: &history.Process{Role: history.RoleAPIServer, Node: "cp-1", State: history.ProcessReady}}},
		says(0), asks(1, "aescbc"),
		encryption(2, history.EncryptionConfigured, "identity"), encryption(3, history.EncryptionLoaded, "identity"),
		encryption(10, history.EncryptionConfigured, "aescbc-1"), encryption(11, history.EncryptionLoaded, "aescbc-1"), encryption(30, history.EncryptionMigrated, "aescbc-1"),
	}, more)
	slices.SortStableFunc(all, func(a, b told) int { return a.at - b.at })
	var events []history.Event
	for i, x := range all {
		events = append(events, x.event(i+1))
	}
	return events
}

func toClearText(at int) []told {
	return []told{asks(at, "identity"), encryption(at+10, history.EncryptionConfigured, "identity"), encryption(at+11, history.EncryptionLoaded, "identity")}
}

// The condition Encrypted is judged while it is True, when that ends, and when nothing is encrypted any more.
func TestEncrypted(t *testing.T) {
	for name, c := range map[string]struct {
		events []told
		rule   string // - for none
	}{
		"after the migration":              {[]told{says(31, "Encrypted"), lies(31, "aescbc-1"), lies(300, "aescbc-1")}, "-"},
		"before the migration":             {[]told{says(12, "Encrypted"), lies(12, "identity")}, ""},
		"an inventory from before":         {[]told{lies(12, "identity"), says(31, "Encrypted")}, "-"},
		"on the way back":                  {append(toClearText(40), says(31, "Encrypted"), lies(55, "identity"), says(60)), "-"},
		"ends while a key writes":          {[]told{says(31, "Encrypted"), asks(40, "KMS"), says(45)}, "held"},
		"ends when clear text is asked":    {append(toClearText(40), says(31, "Encrypted"), says(42)), "-"},
		"ends with an operator that fails": {[]told{says(31, "Encrypted"), says(45, "EncryptionStateControllerDegraded")}, "-"},
		"stays for ever":                   {append(toClearText(40), says(31, "Encrypted"), lies(260, "identity")), "decrypted"},
		"stays while nobody runs":          {append(toClearText(40), says(31, "Encrypted"), acts(45, "kill", history.ActionBegan, nil), lies(260, "identity")), "-"},
	} {
		f := judgeEncrypted(facts.New(toAESCBC(c.events...)))
		if got := rulesOf(f); f.Judged == 0 || got != c.rule {
			t.Errorf("%s: judged %d, %q, expected %q: %+v", name, f.Judged, got, c.rule, f.Violations)
		}
	}
}

func rulesOf(f Finding) (rules string) {
	if len(f.Violations) == 0 {
		return "-"
	}
	for _, x := range f.Violations {
		rules += x.Rule
	}
	return rules
}

// A condition that stays is one only when what is asked for is in force and nothing is wrong.
func TestConditionEnds(t *testing.T) {
	const degraded = "EncryptionKeyControllerDegraded"
	refusal := func(at int, over bool) told {
		return told{at, history.Event{Refusal: &history.Refusal{Role: history.RoleOperator, Mode: history.RefuseTimeout, Over: over}}}
	}
	for name, c := range map[string]struct {
		events []told
		judged bool
		count  int
	}{
		"ends":                     {[]told{says(20, degraded), says(200), says(300)}, true, 0},
		"stays":                    {[]told{says(20, degraded), says(300, degraded)}, true, 1},
		"progresses for ever":      {[]told{says(20, "EncryptionMigrationControllerProgressing"), lies(300, "aescbc-1")}, true, 1},
		"of another controller":    {[]told{says(20, "StaticPodsDegraded"), lies(300, "aescbc-1")}, true, 0},
		"something else is wanted": {[]told{says(20, degraded), asks(100, "KMS"), lies(400, "aescbc-1")}, false, 0},
		"requests are refused":     {[]told{says(20, degraded), refusal(25, false), lies(400, "aescbc-1")}, false, 0},
		"requests were refused":    {[]told{says(20, degraded), refusal(25, false), refusal(60, true), lies(300, "aescbc-1")}, true, 1},
		"by the scenario":          {[]told{says(20, degraded), acts(20, "condition", history.ActionBegan, map[string]any{"type": degraded, "delete": true}), lies(300, "aescbc-1")}, true, 0},
	} {
		f := judgeConditionEnds(facts.New(toAESCBC(c.events...)))
		if f.Judged > 0 != c.judged || f.Count != c.count {
			t.Errorf("%s: judged %d, %+v", name, f.Judged, f.Violations)
		}
	}
}
