package revision

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace of all objects.
const Namespace = "openshift-config-managed"

// Labels and annotations. Those of OpenShift have its prefix, the others are the harness's own.
const (
	ComponentLabel = "encryption.apiserver.operator.openshift.io/component"
	RevisionLabel  = "encryption.apiserver.operator.openshift.io/revision"
	// KindLabel tells key secrets from configurations: OpenShift tells them by their names.
	KindLabel = "kmsharness.io/lifecycle"

	modeAnnotation     = "encryption.apiserver.operator.openshift.io/mode"
	reasonAnnotation   = "encryption.apiserver.operator.openshift.io/internal-reason"
	migratedAnnotation = "encryption.apiserver.operator.openshift.io/migrated-timestamp"
	kekAnnotation      = "encryption.apiserver.operator.openshift.io/migrated-remote-key-id"
	initialAnnotation  = "kmsharness.io/initial-kek"
	convergedKEK       = "encryption.apiserver.operator.openshift.io/remote-key-converged-id"
	convergedSince     = "encryption.apiserver.operator.openshift.io/remote-key-converged-at"
	keysAnnotation     = "kmsharness.io/keys"
)

// Kinds of objects, as KindLabel says them.
const (
	KindKey          = "key"
	KindConfig       = "encryption-config"
	KindPluginConfig = "kms-plugin-config"
)

// Selector of a component's objects of one kind.
func Selector(c Component, kind string) string {
	return ComponentLabel + "=" + string(c) + "," + KindLabel + "=" + kind
}

// KeyName is the name of a key's Secret.
func KeyName(c Component, id uint64) string { return fmt.Sprintf("encryption-key-%s-%d", c, id) }

// ConfigName is the name of an encryption configuration's Secret.
func ConfigName(c Component, revision int) string {
	return fmt.Sprintf("encryption-config-%s-%d", c, revision)
}

// PluginConfigName is the name of a plugin configuration's ConfigMap.
func PluginConfigName(c Component, revision int) string {
	return fmt.Sprintf("kms-plugin-config-%s-%d", c, revision)
}

func meta(c Component, kind, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: Namespace, Annotations: map[string]string{},
		Labels: map[string]string{ComponentLabel: string(c), KindLabel: kind}}
}

func numbered(c Component, kind, name string, revision int) metav1.ObjectMeta {
	m := meta(c, kind, name)
	m.Labels[RevisionLabel] = strconv.Itoa(revision)
	return m
}

// identify reads component and number of an object, which its name and its labels must agree on.
func identify(m metav1.ObjectMeta, kind string, name func(Component, int) string) (Component, int, error) {
	c := Component(m.Labels[ComponentLabel])
	switch c {
	case KubeAPIServer, OpenShiftAPIServer, OAuthAPIServer, OpenShiftKubeAPIServer:
	default:
		return "", 0, fmt.Errorf("%s: label %s is %q: expected an API server", m.Name, ComponentLabel, c)
	}
	if got := m.Labels[KindLabel]; got != kind {
		return "", 0, fmt.Errorf("%s: label %s is %q: expected %s", m.Name, KindLabel, got, kind)
	}
	text := m.Name[strings.LastIndex(m.Name, "-")+1:]
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || name(c, n) != m.Name {
		return "", 0, fmt.Errorf("%s: expected a name such as %s, with a number from 1", m.Name, name(c, 7))
	}
	if label, there := m.Labels[RevisionLabel]; there && label != text {
		return "", 0, fmt.Errorf("%s: label %s is %q: expected the number in the name", m.Name, RevisionLabel, label)
	}
	return c, n, nil
}
