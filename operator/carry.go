package operator

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// carry carries out one action.
func (o *Operator) carry(ctx context.Context, s exchange.Seen, a core.Action) error {
	switch a := a.(type) {
	case core.RunPreflight:
		o.check(ctx, a.Plugin)
		return nil
	case core.Migrate:
		o.migrate(ctx, a.Attempt)
		return nil
	}
	return o.write(ctx, s, a)
}

// write carries out an action that changes objects.
func (o *Operator) write(ctx context.Context, s exchange.Seen, a core.Action) error {
	ctx, cancel := context.WithTimeout(ctx, exchange.RequestTimeout)
	defer cancel()
	if d, is := a.(core.Desire); is {
		return o.desire(ctx, s, d.Content)
	}
	requests, err := o.clerk().Requests(s, a, o.Clock.Now())
	if err != nil {
		return err
	}
	for _, r := range requests {
		if err := o.send(ctx, r); err != nil {
			return err
		}
	}
	if _, made := a.(core.CreateKey); made {
		o.preflight.forget() // it was for this key
	}
	return nil
}

func (o *Operator) clerk() exchange.Clerk {
	return exchange.Clerk{Component: o.Component, Encrypted: o.encrypted(), Random: o.Random}
}

func (o *Operator) send(ctx context.Context, r exchange.Request) (err error) {
	secrets, maps := o.client.CoreV1().Secrets(revision.Namespace), o.client.CoreV1().ConfigMaps(revision.Namespace)
	switch {
	case r.Verb == exchange.Delete && r.Secret != nil:
		err = secrets.Delete(ctx, r.Secret.Name, metav1.DeleteOptions{})
	case r.Verb == exchange.Delete:
		err = maps.Delete(ctx, r.ConfigMap.Name, metav1.DeleteOptions{})
	case r.Verb == exchange.Update:
		_, err = secrets.Update(ctx, r.Secret, metav1.UpdateOptions{FieldManager: exchange.FieldManager})
	case r.Secret != nil:
		_, err = secrets.Create(ctx, r.Secret, metav1.CreateOptions{FieldManager: exchange.FieldManager})
	default:
		_, err = maps.Create(ctx, r.ConfigMap, metav1.CreateOptions{FieldManager: exchange.FieldManager})
	}
	if r.Verb == exchange.Delete && apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
