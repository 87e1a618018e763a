package operator

import (
	"context"
	"fmt"
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

// say writes the conditions, all of them, if one has changed.
func (o *Operator) say(ctx context.Context, conditions []core.Condition) error {
	next, items, changed := map[string]spoken{}, []any{}, false
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
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetName(object)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := o.dynamic.Resource(o.Resource).ApplyStatus(ctx, object, u, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply conditions to %s/%s: %w", o.Resource.Resource, object, err)
	}
	o.said = next
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
