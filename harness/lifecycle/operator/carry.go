package operator

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/lifecycle/config"
	"github.com/kmsharness/kmsharness/harness/lifecycle/core"
	"github.com/kmsharness/kmsharness/harness/lifecycle/revision"
)

// carry carries out one action.
func (o *Operator) carry(ctx context.Context, s seen, a core.Action) error {
	o.Log.Info("action", "kind", fmt.Sprintf("%T", a), "action", fmt.Sprintf("%+v", a))
	switch a := a.(type) {
	case core.StartPlugins:
		return o.Executor.StartPlugins(ctx, a.Node, a.Plugins)
	case core.StopPlugins:
		return o.Executor.StopPlugins(ctx, a.Node, a.Plugins)
	case core.Report:
		return o.Executor.Report(ctx, a.Node, a.Plugins)
	case core.RollOut:
		return o.rollOut(ctx, s, a)
	case core.RunPreflight:
		o.check(ctx, a.Plugin)
		return nil
	case core.Migrate:
		o.migrate(ctx, a.Attempt)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return o.write(ctx, s, a)
}

// write carries out one that changes objects.
func (o *Operator) write(ctx context.Context, s seen, a core.Action) error {
	switch a := a.(type) {
	case core.CreateKey:
		return o.createKey(ctx, a.Key)
	case core.UpdateKey:
		return o.updateKey(ctx, s, a.Key)
	case core.CreateConfig:
		return o.createConfig(ctx, s, a.Config)
	case core.CreatePluginConfig:
		m, err := revision.PluginConfigMap(o.Component, a.Config, o.Core.Scheme, contract.SocketDir)
		if err != nil {
			return err
		}
		_, err = o.client.CoreV1().ConfigMaps(revision.Namespace).Create(ctx, m, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	case core.Prune:
		return o.prune(ctx, a)
	}
	return fmt.Errorf("action %T is unknown", a)
}

func (o *Operator) rollOut(ctx context.Context, s seen, a core.RollOut) error {
	file, there := s.files[a.Revision]
	if !there {
		return errBehind
	}
	return o.Executor.RollOut(ctx, a.Node, a.Revision, file)
}

func (o *Operator) createKey(ctx context.Context, k revision.Key) error {
	var material []byte
	if k.Type == config.AESCBC || k.Type == config.AESGCM {
		material = make([]byte, revision.MaterialSize)
		if _, err := io.ReadFull(o.Random, material); err != nil {
			return fmt.Errorf("make key %d: %w", k.ID, err)
		}
	}
	secret, err := revision.KeySecret(o.Component, k, material)
	if err == nil {
		_, err = o.client.CoreV1().Secrets(revision.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err == nil {
		o.preflight.forget() // it was for this key
	}
	return err
}

// updateKey fails if the Secret is not the one that was observed: its resource version says so.
func (o *Operator) updateKey(ctx context.Context, s seen, k revision.Key) error {
	secret, there := s.secrets[k.ID]
	if !there {
		return errBehind
	}
	changed, err := revision.KeySecret(o.Component, k, s.material[k.ID])
	if err != nil {
		return err
	}
	secret = secret.DeepCopy()
	secret.Data = changed.Data
	revision.Annotate(secret, k, o.Clock.Now())
	_, err = o.client.CoreV1().Secrets(revision.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	return err
}

func (o *Operator) createConfig(ctx context.Context, s seen, c revision.Config) error {
	f := revision.File{Resources: o.Encrypted, Keys: s.Keys, Material: s.material, Scheme: o.Core.Scheme, Dir: contract.SocketDir}
	secret, err := revision.ConfigSecret(o.Component, c, f)
	if err == nil {
		_, err = o.client.CoreV1().Secrets(revision.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager})
	}
	return err
}

func (o *Operator) prune(ctx context.Context, p core.Prune) error {
	secrets, maps := o.client.CoreV1().Secrets(revision.Namespace), o.client.CoreV1().ConfigMaps(revision.Namespace)
	remove := func(err error) error {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	for _, id := range p.Keys {
		if err := remove(secrets.Delete(ctx, revision.KeyName(o.Component, id), metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	for _, r := range p.Configs {
		if err := remove(secrets.Delete(ctx, revision.ConfigName(o.Component, r), metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	for _, r := range p.PluginConfigs {
		if err := remove(maps.Delete(ctx, revision.PluginConfigName(o.Component, r), metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	return nil
}
