package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kmsharness/kmsharness/scenarios/mutants/plainoperator"
)

// Field managers of the conditions and of the state of the pre-flight check.
const (
	conditionsManager = "plain-operator"
	preflightManager  = "plain-operator-preflight"
)

// carry carries a step out.
func (e *edge) carry(ctx context.Context, s snapshot, step plainoperator.Step) error {
	switch step.Do {
	case plainoperator.CreateKey:
		key, err := e.newKey(s, step.Key)
		if err != nil {
			return err
		}
		if err = e.Create(ctx, key); apierrors.IsAlreadyExists(err) && step.Replace {
			err = e.Update(ctx, key)
		}
		return err
	case plainoperator.UpdateKey:
		fresh, err := e.newKey(s, step.Key)
		if err != nil {
			return err
		}
		return e.updateKey(ctx, s, step.Key, func(key *corev1.Secret) error { key.Data = fresh.Data; return nil })
	case plainoperator.MarkMigrated:
		return e.updateKey(ctx, s, step.Key, func(key *corev1.Secret) error {
			return plainoperator.SetMigrated(key, step.Resource, s.Now.UTC().Format(time.RFC3339))
		})
	case plainoperator.ForgetMigrated:
		return e.updateKey(ctx, s, step.Key, func(key *corev1.Secret) error {
			plainoperator.ForgetMigration(key)
			return nil
		})
	case plainoperator.PruneKey:
		if err := e.updateKey(ctx, s, step.Key, func(key *corev1.Secret) error {
			key.Finalizers = slices.DeleteFunc(key.Finalizers, func(f string) bool { return f == plainoperator.Finalizer })
			return nil
		}); err != nil {
			return err
		}
		return e.remove(ctx, &corev1.Secret{ObjectMeta: object(plainoperator.Managed, plainoperator.KeyName(e.component, step.Key))})
	case plainoperator.WriteTarget:
		return e.writeTarget(ctx, s, step.File)
	case plainoperator.StartMigration:
		m := migration(step.Resource)
		m.SetAnnotations(map[string]string{plainoperator.WriteKeyAnnotation: fmt.Sprint(step.Key)})
		m.Object["spec"] = map[string]any{"resource": map[string]any{"group": "", "version": "v1", "resource": step.Resource}}
		return e.Create(ctx, m)
	case plainoperator.DropMigration:
		return e.remove(ctx, migration(step.Resource))
	case plainoperator.StartPreflight:
		return e.startPreflight(ctx, s, step)
	case plainoperator.EndPreflight:
		return errors.Join(e.remove(ctx, &corev1.Pod{ObjectMeta: object(e.component, preflightName)}), e.remove(ctx, &corev1.Secret{ObjectMeta: object(e.component, preflightSecret)}))
	default: // AskPreflight, RecordPreflight
		return e.recordPreflight(ctx, step)
	}
}

func (e *edge) remove(ctx context.Context, o client.Object) error {
	return client.IgnoreNotFound(e.Delete(ctx, o))
}

// recordPreflight applies the hash that needs a check, and the result if there is one.
func (e *edge) recordPreflight(ctx context.Context, step plainoperator.Step) error {
	preflight := map[string]any{"observedConfigHash": step.Hash}
	if step.Do == plainoperator.RecordPreflight {
		result := map[string]any{"status": "Failed", "configHash": step.Hash, "remoteKeyID": cmp.Or(step.RemoteKeyID, "unknown")}
		if step.OK {
			result["status"] = "Succeeded"
		}
		preflight["result"] = result
	}
	return e.apply(ctx, preflightManager, map[string]any{"encryptionStatus": map[string]any{"preflight": preflight}})
}

// newKey is a key Secret for the desired encryption.
func (e *edge) newKey(s snapshot, id int) (*corev1.Secret, error) {
	material := make([]byte, 32)
	rand.Read(material) // never fails
	reason := "encryption-mode-changed"
	switch newest := s.Newest(); {
	case newest.ID == 0:
		reason = "key-does-not-exist"
	case newest.Mode == s.Desired.Mode:
		reason = "kms-provider-changed"
	}
	return plainoperator.KeySecret(e.component, id, s.Desired.Mode, material, s.plugin, reason)
}

// updateKey changes a key Secret as it was read: a conflict is an error, and the next pass reads it again.
func (e *edge) updateKey(ctx context.Context, s snapshot, id int, change func(*corev1.Secret) error) error {
	i := slices.IndexFunc(s.secrets, func(key *corev1.Secret) bool { return key.Name == plainoperator.KeyName(e.component, id) })
	if i < 0 {
		return fmt.Errorf("the Secret of key %d is missing", id)
	}
	if err := change(s.secrets[i]); err != nil {
		return err
	}
	return e.Update(ctx, s.secrets[i])
}

func (e *edge) writeTarget(ctx context.Context, s snapshot, f plainoperator.File) error {
	data, err := e.operator.Render(f, e.component, s.secrets)
	if err != nil || maps.EqualFunc(s.target.Data, data, bytes.Equal) {
		return err
	}
	if s.target.Data = data; s.target.Name != "" {
		return e.Update(ctx, &s.target)
	}
	s.target.ObjectMeta = object(plainoperator.Managed, "encryption-config-"+e.component)
	s.target.Finalizers = []string{plainoperator.Finalizer}
	return e.Create(ctx, &s.target)
}

// startPreflight creates the pod that checks the desired configuration, and the Secret with an encryption configuration of its plugin alone.
func (e *edge) startPreflight(ctx context.Context, s snapshot, step plainoperator.Step) error {
	key, err := e.newKey(s, step.Key)
	if err != nil {
		return err
	}
	read, err := plainoperator.ReadKey(key)
	if err != nil {
		return err
	}
	data, err := e.operator.Render(plainoperator.Only(read), e.component, []*corev1.Secret{key})
	if err != nil {
		return err
	}
	label := map[string]string{"app": "openshift-kms-preflight"}
	secret := &corev1.Secret{ObjectMeta: object(e.component, preflightSecret), Data: data}
	account := &corev1.ServiceAccount{ObjectMeta: object(e.component, preflightName)}
	pod := &corev1.Pod{ObjectMeta: object(e.component, preflightName), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: preflightName,
		Containers: []corev1.Container{{Name: "kms-preflight-check", Image: s.plugin.Config.Vault.KMSPluginImage, Command: []string{"kms-preflight"},
			Args: []string{"--kms-call-timeout=10s", "--config-hash=" + step.Hash, "--pod-name=" + preflightName, "--pod-namespace=" + e.component,
				"--kms-sockets=" + plainoperator.Socket(step.Key)}}},
	}}
	pod.Annotations = map[string]string{plainoperator.PreflightAnnotation: step.Hash}
	if err := e.remove(ctx, &corev1.Secret{ObjectMeta: secret.ObjectMeta}); err != nil {
		return err
	}
	for _, o := range []client.Object{secret, account, pod} {
		o.SetLabels(label)
		if err := e.Create(ctx, o); err != nil && (o != account || !apierrors.IsAlreadyExists(err)) {
			return err
		}
	}
	return nil
}

// publish applies the conditions, unless the CR has them.
func (e *edge) publish(ctx context.Context, s snapshot, conditions []plainoperator.Condition) error {
	had := map[string]operatorv1.OperatorCondition{}
	for _, c := range s.cr.Status.Conditions {
		had[c.Type] = c
	}
	var all []operatorv1.OperatorCondition
	changed := false
	for _, c := range conditions {
		before, there := had[c.Type]
		now := operatorv1.OperatorCondition{Type: c.Type, Status: operatorv1.ConditionStatus(c.Status), Reason: c.Reason, Message: strings.ToValidUTF8(c.Message, "?")}
		switch {
		case c.Status == "" && there:
			now = before
		case c.Status == "":
			now.Status, now.Reason = operatorv1.ConditionFalse, "EncryptionInProgress"
		}
		if now.LastTransitionTime = before.LastTransitionTime; now.Status != before.Status {
			now.LastTransitionTime = metav1.NewTime(s.Now)
		}
		changed, all = changed || now != before, append(all, now)
	}
	switch {
	case !changed:
		return nil
	case e.defect.Replaces:
		s.cr.Status.Conditions = all
		return e.Status().Update(ctx, &s.cr)
	}
	return e.apply(ctx, conditionsManager, map[string]any{"conditions": all})
}

// apply applies a part of the CR's status.
func (e *edge) apply(ctx context.Context, manager string, status map[string]any) error {
	text, err := json.Marshal(map[string]any{"apiVersion": operatorv1.GroupVersion.String(), "kind": "KubeAPIServer", "metadata": map[string]any{"name": cluster}, "status": status})
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	var cr unstructured.Unstructured
	if err := cr.UnmarshalJSON(text); err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	return e.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&cr), client.FieldOwner(manager), client.ForceOwnership)
}
