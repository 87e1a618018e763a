package exchange

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
)

// FieldManager of the conditions.
const FieldManager = "kmsharness-operator"

// PublishedStatus is what an operator has said on its CR. The zero value has said nothing.
type PublishedStatus struct {
	said  map[string]spoken // conditions by type
	asked map[string]any    // state of the pre-flight check
}

// spoken is a condition that was written, and since when its status is so.
type spoken struct {
	core.Condition
	since time.Time
}

// maxMessage bounds a condition, in characters.
const maxMessage = 4096

// WantedStatus are what is to be said: the conditions, and the state of the pre-flight check. Wanted without a hash has none.
type WantedStatus struct {
	Conditions []core.Condition
	Wanted     core.Wanted
	Preflight  core.Preflight
}

// Next is the CR of a kind with all that is to be applied to its status, and what has been said when that is done; nil if nothing has changed.
func (s PublishedStatus) Next(kind string, w WantedStatus, now time.Time) (cr map[string]any, then PublishedStatus, err error) {
	asked := handshake(w.Wanted, w.Preflight)
	next, items, changed := map[string]spoken{}, []any{}, !reflect.DeepEqual(asked, s.asked)
	for _, c := range w.Conditions {
		c.Message = contract.SafeText(c.Message, maxMessage)
		before, there := s.said[c.Type]
		one := spoken{c, before.since}
		if !there || before.Status != c.Status {
			one.since = now
		}
		changed = changed || !there || before.Condition != c
		next[c.Type] = one
		items = append(items, one.item())
	}
	if !changed {
		return nil, s, nil
	}
	cr = map[string]any{"status": map[string]any{"conditions": items}}
	if asked != nil {
		if err := unstructured.SetNestedField(cr, asked, append(typed(kind), "preflight")...); err != nil {
			return nil, s, fmt.Errorf("pre-flight check: %w", err)
		}
	}
	return cr, PublishedStatus{next, asked}, nil
}

// reasonUnreadable of core.ConditionConfig.
const reasonUnreadable = "StateUnreadable"

// Unreadable are the words of an operator that cannot read its own objects. Nothing else is known then, so nothing else is said. ok is false
// for an error that is about something else.
func Unreadable(err error) (w WantedStatus, ok bool) {
	if !errors.Is(err, ErrUnreadable) {
		return WantedStatus{}, false
	}
	return WantedStatus{Conditions: []core.Condition{{Type: core.ConditionConfig, Status: true, Reason: reasonUnreadable, Message: err.Error()}}}, true
}

func (s spoken) item() map[string]any {
	status := "False"
	if s.Status {
		status = "True"
	}
	return map[string]any{"type": s.Type, "status": status, "reason": s.Reason, "message": s.Message, "lastTransitionTime": s.since.UTC().Format(time.RFC3339)}
}

// handshake is status.encryptionStatus.preflight: the hash of the configuration that is asked for, and that of the one which was checked
// last. Whoever makes a key needs both to be the same.
func handshake(w core.Wanted, p core.Preflight) map[string]any {
	if w.Invalid != "" || w.Hash() == "" {
		return nil
	}
	out := map[string]any{"observedConfigHash": w.Hash()}
	if p.At.IsZero() {
		return out
	}
	status, kek := "Failed", contract.UnknownKEKID
	if p.OK {
		status, kek = "Succeeded", p.KEK
	}
	out["result"] = map[string]any{"status": status, "configHash": p.Hash, "remoteKeyID": kek}
	return out
}
