package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kmsharness/kmsharness/scenarios/mutants/plainoperator"
)

const (
	cluster         = "cluster" // name of the APIServer and of the operator's CR
	preflightName   = "kms-preflight"
	preflightSecret = "kms-preflight-encryption-config"
)

// edge is everything that meets the API.
type edge struct {
	client.Client
	component string // also the namespace of the API server's pods
	defect    plainoperator.Defect
	operator  *plainoperator.Operator
}

func newEdge(config *rest.Config, component string, defect plainoperator.Defect) (*edge, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100 // a pass makes ten requests
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), configv1.Install(scheme), operatorv1.Install(scheme))
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &edge{c, component, defect, plainoperator.New(defect)}, nil
}

// snapshot is what a pass read, and the objects that a step changes.
type snapshot struct {
	plainoperator.Observed
	plugin  plainoperator.Plugin
	secrets []*corev1.Secret // keys, the newest first
	target  corev1.Secret
	cr      operatorv1.KubeAPIServer
}

// read reads everything. With an error, the CR is there unless it has no name.
func (e *edge) read(ctx context.Context) (s snapshot, err error) {
	s.Now, s.Deployed, s.Migrations = time.Now(), map[int]plainoperator.File{}, map[string]plainoperator.Migration{}
	if err := e.must(ctx, "", cluster, &s.cr); err != nil {
		return s, err
	}
	for _, n := range s.cr.Status.NodeStatuses {
		s.Nodes = append(s.Nodes, n.NodeName)
	}
	return s, errors.Join(e.readDesired(ctx, &s), e.readKeys(ctx, &s), e.readPods(ctx, &s), e.readMigrations(ctx, &s), e.readPreflight(ctx, &s))
}

func (e *edge) must(ctx context.Context, namespace, name string, o client.Object) error {
	if err := e.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
		return fmt.Errorf("get %T %s/%s: %w", o, namespace, name, err)
	}
	return nil
}

// may reads an object that may be absent: it stays empty then.
func (e *edge) may(ctx context.Context, namespace, name string, o client.Object) error {
	return client.IgnoreNotFound(e.must(ctx, namespace, name, o))
}

func (e *edge) readDesired(ctx context.Context, s *snapshot) error {
	var a configv1.APIServer
	if err := e.must(ctx, "", cluster, &a); err != nil {
		return err
	}
	s.Desired.Mode = plainoperator.Mode(a.Spec.Encryption.Type)
	problem, err := e.readPlugin(ctx, s, a.Spec.Encryption)
	if err != nil || problem != "" {
		s.Desired.Problem = problem
		return err
	}
	if s.Desired, err = plainoperator.Want(a.Spec.Encryption, s.plugin); err != nil {
		s.Desired.Problem = err.Error()
	}
	return nil
}

// readPlugin reads what a plugin's configuration refers to. The problem is what is missing.
func (e *edge) readPlugin(ctx context.Context, s *snapshot, encryption configv1.APIServerEncryption) (problem string, err error) {
	if encryption.Type != configv1.EncryptionTypeKMS {
		return "", nil
	}
	references, err := plainoperator.References(encryption.KMS)
	if err != nil {
		return err.Error(), nil
	}
	credentials := map[string][]byte{}
	for _, r := range references {
		var secret corev1.Secret
		var configMap corev1.ConfigMap
		if r.Kind == "secret" {
			err = e.may(ctx, plainoperator.Config, r.Name, &secret)
		} else {
			err = e.may(ctx, plainoperator.Config, r.Name, &configMap)
		}
		if err != nil {
			return "", err
		}
		for _, k := range r.Keys {
			value := append(secret.Data[k], configMap.Data[k]...)
			if len(value) == 0 {
				return fmt.Sprintf("the %s %s/%s with key %q is missing: create it", r.Kind, plainoperator.Config, r.Name, k), nil
			}
			credentials[r.Kind+"-"+r.Name+"_"+k] = value
		}
	}
	s.plugin = e.operator.Plugin(plainoperator.Plugin{Config: encryption.KMS, Credentials: credentials})
	return "", nil
}

func (e *edge) readKeys(ctx context.Context, s *snapshot) (err error) {
	var list corev1.SecretList
	if err := e.List(ctx, &list, client.InNamespace(plainoperator.Managed), client.MatchingLabels{plainoperator.ComponentLabel: e.component}); err != nil {
		return fmt.Errorf("list the key Secrets: %w", err)
	}
	for i := range list.Items {
		k, err := plainoperator.ReadKey(&list.Items[i])
		if err != nil {
			return err
		}
		s.Keys, s.secrets = append(s.Keys, k), append(s.secrets, &list.Items[i])
	}
	slices.SortFunc(s.Keys, func(a, b plainoperator.Key) int { return b.ID - a.ID })
	s.Target, err = e.file(ctx, plainoperator.Managed, "encryption-config-"+e.component, &s.target)
	return err
}

// file reads a Secret with an encryption configuration, which may be absent.
func (e *edge) file(ctx context.Context, namespace, name string, s *corev1.Secret) (plainoperator.File, error) {
	if err := e.may(ctx, namespace, name, s); err != nil {
		return plainoperator.File{}, err
	}
	f, err := plainoperator.ReadFile(s.Data)
	if err != nil {
		return f, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return f, nil
}

func (e *edge) readPods(ctx context.Context, s *snapshot) error {
	var pods corev1.PodList
	if err := e.List(ctx, &pods, client.InNamespace(e.component), client.MatchingLabels{"apiserver": "true"}); err != nil {
		return fmt.Errorf("list the pods of %s: %w", e.component, err)
	}
	for _, p := range pods.Items {
		revision, err := strconv.Atoi(p.Labels["revision"])
		if err != nil {
			return fmt.Errorf("pod %s: label revision is %q: expected a number", p.Name, p.Labels["revision"])
		}
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		s.Pods = append(s.Pods, plainoperator.Pod{Node: p.Spec.NodeName, Revision: revision, Ready: ready && p.Status.Phase == corev1.PodRunning, Ended: ended(p.Status.Phase)})
		if _, read := s.Deployed[revision]; !read {
			if s.Deployed[revision], err = e.file(ctx, e.component, fmt.Sprintf("encryption-config-%d", revision), &corev1.Secret{}); err != nil {
				return err
			}
		}
	}
	return nil
}

func ended(p corev1.PodPhase) bool { return p == corev1.PodSucceeded || p == corev1.PodFailed }

// migration is the StorageVersionMigration of a resource.
func migration(resource string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "migration.k8s.io/v1alpha1", "kind": "StorageVersionMigration"}}
	m.SetName("encryption-migration-core-" + resource)
	return m
}

func (e *edge) readMigrations(ctx context.Context, s *snapshot) error {
	for _, r := range plainoperator.Resources() {
		object := migration(r)
		if err := e.must(ctx, "", object.GetName(), object); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return err
		}
		m := plainoperator.Migration{}
		m.Key, _ = strconv.Atoi(object.GetAnnotations()[plainoperator.WriteKeyAnnotation]) // another's object is replaced
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, c := range conditions {
			c, _ := c.(map[string]any)
			if c["status"] == "True" && (c["type"] == "Succeeded" || c["type"] == "Failed") {
				m.Succeeded, m.Failed = c["type"] == "Succeeded", c["type"] == "Failed"
				m.Message, _ = c["message"].(string)
				m.At, _ = time.Parse(time.RFC3339, fmt.Sprint(c["lastUpdateTime"])) // without a time it is repeated at once
			}
		}
		s.Migrations[r] = m
	}
	return nil
}

func (e *edge) readPreflight(ctx context.Context, s *snapshot) error {
	p := s.cr.Status.EncryptionStatus.Preflight
	s.Preflight = plainoperator.Preflight{Asked: p.ObservedConfigHash, Hash: p.Result.ConfigHash, OK: p.Result.Status == operatorv1.KMSPreflightResultSucceeded}
	var pod corev1.Pod
	if err := e.may(ctx, e.component, preflightName, &pod); err != nil || pod.Name == "" {
		return err
	}
	got := &plainoperator.PreflightPod{Hash: pod.Annotations[plainoperator.PreflightAnnotation], Message: pod.Status.Message, Failed: ended(pod.Status.Phase)}
	said := map[corev1.PodConditionType]corev1.PodCondition{}
	for _, c := range pod.Status.Conditions {
		said[c.Type] = c
	}
	if result, ok := said["KMSPreflightResult"]; ok && said["KMSPreflightConfigHash"].Message == got.Hash {
		got.Reported, got.OK, got.Message, got.RemoteKeyID = true, result.Status == corev1.ConditionTrue, result.Message, said["KMSPreflightRemoteKeyID"].Message
	}
	s.Preflight.Pod = got
	return nil
}

// object is what every object has.
func object(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
