package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// ErrBehind is for an action that rests upon what is no longer there, or was not seen yet.
var ErrBehind = errors.New("it is no longer as it was observed")

// behind reports whether an action failed because the caches were behind, which is no failure.
func behind(err error) bool {
	return errors.Is(err, ErrBehind) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

func (o *Operator) secrets() typedcorev1.SecretInterface {
	return o.client.CoreV1().Secrets(revision.Namespace)
}

func (o *Operator) configMaps() typedcorev1.ConfigMapInterface {
	return o.client.CoreV1().ConfigMaps(revision.Namespace)
}

// carry carries out one action. What it makes must not be there, and what it changes must be as it was seen: names and resource versions say so.
func (o *Operator) carry(ctx context.Context, s Seen, a core.Action) error {
	switch a := a.(type) {
	case core.RunPreflight:
		o.check(ctx, a.Plugin)
		return nil
	case core.Migrate:
		o.migrate(ctx, a.Attempt)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	switch a := a.(type) {
	case core.CreateKey:
		return o.createKey(ctx, a.Key)
	case core.UpdateKey:
		return o.updateKey(ctx, s, a.Key)
	case core.CreateConfig:
		secret, err := revision.ConfigSecret(o.Component, a.Config, revision.File{Resources: o.encrypted(), Keys: s.Keys, Material: s.material, Dir: contract.SocketDir})
		return o.create(ctx, secret, err)
	case core.CreatePluginConfig:
		m, err := revision.PluginConfigMap(o.Component, a.Config, contract.SocketDir)
		if err == nil {
			_, err = o.configMaps().Create(ctx, m, metav1.CreateOptions{FieldManager: fieldManager})
		}
		return err
	case core.Desire:
		return o.desire(ctx, s, a.Content)
	case core.Prune:
		return o.prune(ctx, s, a)
	}
	return fmt.Errorf("action %T is unknown", a)
}

// create creates a Secret, if it could be made.
func (o *Operator) create(ctx context.Context, s *corev1.Secret, err error) error {
	if err == nil {
		_, err = o.secrets().Create(ctx, s, metav1.CreateOptions{FieldManager: fieldManager})
	}
	return err
}

func (o *Operator) createKey(ctx context.Context, k revision.Key) error {
	var material []byte
	if k.Type.Local() {
		material = make([]byte, revision.MaterialSize)
		if _, err := io.ReadFull(o.Random, material); err != nil {
			return fmt.Errorf("make key %d: %w", k.ID, err)
		}
	}
	secret, err := revision.KeySecret(o.Component, k, material)
	if err := o.create(ctx, secret, err); err != nil {
		return err
	}
	o.used = o.preflight.get()
	o.preflight.forget() // it was for this key
	return nil
}

func (o *Operator) updateKey(ctx context.Context, s Seen, k revision.Key) error {
	secret, there := s.secrets[k.ID]
	if !there {
		return ErrBehind
	}
	changed, err := revision.KeySecret(o.Component, k, s.material[k.ID])
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = changed.Data
	revision.Annotate(secret, k, o.Clock.Now(), o.encrypted())
	_, err = o.secrets().Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

// prune deletes keys and revisions, of keys the finalizer first. What is not there need not be deleted.
func (o *Operator) prune(ctx context.Context, s Seen, p core.Prune) error {
	for _, id := range p.Keys {
		if key := s.secrets[id]; key != nil && slices.Contains(key.Finalizers, revision.Finalizer) {
			key = key.DeepCopy()
			key.Finalizers = slices.DeleteFunc(key.Finalizers, func(f string) bool { return f == revision.Finalizer })
			if _, err := o.secrets().Update(ctx, key, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
				return err
			}
		}
		if err := o.secrets().Delete(ctx, revision.KeyName(o.Component, id), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, r := range p.Configs {
		if err := o.secrets().Delete(ctx, revision.ConfigName(o.Component, r), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, r := range p.PluginConfigs {
		if err := o.configMaps().Delete(ctx, revision.PluginConfigName(o.Component, r), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
