package operator

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/operator/exchange"
)

// say writes the conditions, all of them, and the state of the pre-flight check, if something has changed.
func (o *Operator) say(ctx context.Context, w exchange.WantedStatus) error {
	cr, then, err := o.published.Next(o.Kind, w, o.Clock.Now())
	if err != nil || cr == nil {
		return err
	}
	u := &unstructured.Unstructured{Object: cr}
	u.SetGroupVersionKind(o.Resource.GroupVersion().WithKind(o.Kind))
	u.SetName(object)
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	if _, err := o.dynamic.Resource(o.Resource).ApplyStatus(ctx, object, u, metav1.ApplyOptions{FieldManager: exchange.FieldManager, Force: true}); err != nil {
		return fmt.Errorf("apply conditions to %s/%s: %w", o.Resource.Resource, object, err)
	}
	o.published = then
	return nil
}

// reportUnreadable says in the status that the operator cannot read its own objects, if that is what is wrong.
func (o *Operator) reportUnreadable(ctx context.Context, err error) error {
	words, ok := exchange.Unreadable(err)
	if !ok {
		return err
	}
	return errors.Join(err, o.say(ctx, words))
}
