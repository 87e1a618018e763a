package operator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
)

const (
	// fieldManager of everything that the operator writes.
	fieldManager = "kmsharness-operator"
	// maxMessage bounds the message of a condition, in characters.
	maxMessage = 4096
	// reasonUnreadable of core.ConditionConfig.
	reasonUnreadable = "StateUnreadable"
)

// published is what the operator has written to the status of its CR.
type published struct {
	conditions []metav1.Condition
	preflight  map[string]any // see handshake
}

// next is what is to be published. A condition keeps the time since when its status is so.
func (p published) next(conditions []core.Condition, preflight map[string]any, now time.Time) published {
	next := published{preflight: preflight}
	for _, c := range conditions {
		one := metav1.Condition{Type: c.Type, Status: metav1.ConditionFalse, Reason: c.Reason, Message: contract.SafeText(c.Message, maxMessage), LastTransitionTime: metav1.NewTime(now)}
		if c.Status {
			one.Status = metav1.ConditionTrue
		}
		if before := meta.FindStatusCondition(p.conditions, c.Type); before != nil && before.Status == one.Status {
			one.LastTransitionTime = before.LastTransitionTime
		}
		next.conditions = append(next.conditions, one)
	}
	return next
}

// say writes the conditions, all of them, and the state of the pre-flight check, if something has changed.
func (o *Operator) say(ctx context.Context, conditions []core.Condition, preflight map[string]any) error {
	next := o.published.next(conditions, preflight, o.Clock.Now())
	if reflect.DeepEqual(next, o.published) {
		return nil
	}
	var items []any
	for _, c := range next.conditions {
		items = append(items, map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message, "lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339)})
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": items}}}
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetName(CR)
	if preflight != nil {
		if err := unstructured.SetNestedField(u.Object, preflight, append(typed(o.Kind), "preflight")...); err != nil {
			return fmt.Errorf("pre-flight check: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := o.dynamic.Resource(o.Resource).ApplyStatus(ctx, CR, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply conditions to %s/%s: %w", o.Resource.Resource, CR, err)
	}
	o.published = next
	return nil
}

// reportUnreadable says in the status that the operator cannot read its own objects, if that is what is wrong. Nothing else is known then, so nothing else is
// said, except that what was encrypted stays so: nothing is done meanwhile.
func (o *Operator) reportUnreadable(ctx context.Context, err error) error {
	if !errors.Is(err, ErrUnreadable) {
		return err
	}
	conditions := []core.Condition{{Type: core.ConditionConfig, Status: true, Reason: reasonUnreadable, Message: err.Error()}}
	if c := meta.FindStatusCondition(o.published.conditions, contract.ConditionEncrypted); c != nil {
		conditions = append(conditions, core.Condition{Type: c.Type, Status: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message})
	}
	return errors.Join(err, o.say(ctx, conditions, nil))
}

// handshake is status.encryptionStatus.preflight: the hash of the configuration that is asked for, and that of the one which was checked last. A key may be
// made when both are the same.
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
		status = "Succeeded"
	}
	if p.KEK != "" {
		kek = p.KEK
	}
	out["result"] = map[string]any{"status": status, "configHash": p.Hash, "remoteKeyID": kek}
	return out
}
