package operator

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
)

// spoken is a condition that was written, and since when its status is so.
type spoken struct {
	core.Condition
	since time.Time
}

// say writes the conditions, all of them, and the state of the pre-flight check, if something has changed.
func (o *Operator) say(ctx context.Context, s seen, conditions []core.Condition) error {
	asked := handshake(s.Wanted, o.preflight.get())
	next, items, changed := map[string]spoken{}, []any{}, !reflect.DeepEqual(asked, o.asked)
	for _, c := range conditions {
		c.Message = contract.SafeText(c.Message, maxMessage)
		before, there := o.said[c.Type]
		s := spoken{c, before.since}
		if !there || before.Status != c.Status {
			s.since = o.Clock.Now()
		}
		changed = changed || !there || before.Condition != c
		next[c.Type] = s
		items = append(items, s.item())
	}
	if !changed {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": items}}}
	if asked != nil {
		if err := unstructured.SetNestedField(u.Object, asked, append(o.typed(), "preflight")...); err != nil {
			return fmt.Errorf("pre-flight check: %w", err)
		}
	}
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetName(object)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := o.dynamic.Resource(o.Resource).ApplyStatus(ctx, object, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply conditions to %s/%s: %w", o.Resource.Resource, object, err)
	}
	o.said, o.asked = next, asked
	return nil
}

// maxMessage bounds a condition, in characters.
const maxMessage = 4096

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

// typed is where the CR has the typed status.
func (o *Operator) typed() []string {
	if o.Kind == "Authentication" {
		return []string{"status", "oauthAPIServer", "encryptionStatus"}
	}
	return []string{"status", "encryptionStatus"}
}
