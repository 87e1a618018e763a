package revision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
)

// Namespace of all objects.
const Namespace = "openshift-config-managed"

// Labels and annotations. Those of OpenShift have its prefix, the others are the harness's own.
const (
	ComponentLabel = "encryption.apiserver.operator.openshift.io/component"
	RevisionLabel  = "encryption.apiserver.operator.openshift.io/revision"
	// KindLabel tells key secrets from configurations: OpenShift tells them by their names.
	KindLabel = "kmsharness.io/lifecycle"

	ModeAnnotation     = "encryption.apiserver.operator.openshift.io/mode"
	reasonAnnotation   = "encryption.apiserver.operator.openshift.io/internal-reason"
	migratedAnnotation = "encryption.apiserver.operator.openshift.io/migrated-timestamp"
	KEKAnnotation      = "encryption.apiserver.operator.openshift.io/migrated-remote-key-id"
	// TargetKEKAnnotation has the kekID of the pre-flight check, as long as plugins have reported no other one.
	TargetKEKAnnotation    = "encryption.apiserver.operator.openshift.io/target-remote-key-id"
	ConvergedKEKAnnotation = "encryption.apiserver.operator.openshift.io/remote-key-converged-id"
	convergedSince         = "encryption.apiserver.operator.openshift.io/remote-key-converged-at"
	keysAnnotation         = "kmsharness.io/keys"
)

// Kinds of objects, as KindLabel says them.
const (
	KindKey          = "key"
	KindConfig       = "encryption-config"
	KindPluginConfig = "kms-plugin-config"
)

// KeyName is the name of a key's Secret, and KeyPrefix begins those of all keys.
func KeyName(c Component, id uint64) string { return KeyPrefix(c) + strconv.FormatUint(id, 10) }
func KeyPrefix(c Component) string          { return "encryption-key-" + string(c) + "-" }

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

// identify reads the number of an object, whose name and labels must agree.
func identify(m metav1.ObjectMeta, kind string, name func(Component, int) string) (int, error) {
	c := Component(m.Labels[ComponentLabel])
	switch c {
	case KubeAPIServer, OpenShiftAPIServer, OAuthAPIServer:
	default:
		return 0, fmt.Errorf("%s: label %s is %q: expected an API server", m.Name, ComponentLabel, c)
	}
	if got := m.Labels[KindLabel]; got != kind {
		return 0, fmt.Errorf("%s: label %s is %q: expected %s", m.Name, KindLabel, got, kind)
	}
	text := m.Name[strings.LastIndex(m.Name, "-")+1:]
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || name(c, n) != m.Name {
		return 0, fmt.Errorf("%s: expected a name such as %s, with a number from 1", m.Name, name(c, 7))
	}
	if label, there := m.Labels[RevisionLabel]; there && label != text {
		return 0, fmt.Errorf("%s: label %s is %q: expected the number in the name", m.Name, RevisionLabel, label)
	}
	return n, nil
}

// SocketName is what the socket of a key's plugin is called after: kms-{keyID}.sock. A plugin with other settings for the same key listens at the same
// socket. Reporters call the plugin by the name.
func SocketName(keyID uint64) string { return strconv.FormatUint(keyID, 10) }

// Socket is the endpoint of a key's plugin below dir.
func Socket(dir string, keyID uint64) string { return contract.SocketPath(dir, SocketName(keyID)) }

// ParseKeyID reads a keyID in the one way in which it is written.
func ParseKeyID(text string) (uint64, error) {
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == Plain || strconv.FormatUint(id, 10) != text {
		return 0, fmt.Errorf("keyID %q: expected a number from 1, without leading zeros", text)
	}
	return id, nil
}

// Prunable are revisions that may go, the oldest first: all but the keep newest, and never the newest.
func Prunable[T revisioned](all []T, keep int) []int {
	var numbers []int
	for _, r := range all {
		numbers = append(numbers, r.revision())
	}
	slices.Sort(numbers)
	return numbers[:max(0, len(numbers)-max(1, keep))]
}

// PrunableKeys are keys that may go, the oldest first. The caller must know that no object is encrypted under a key that is not in the
// configuration. The newest key stays, so that its ID is never given away again, and so do the keep newest of those not in use: a
// backup may need them.
func PrunableKeys(keys []Key, keep int, c Config) []uint64 {
	newest := NewestKey(keys).ID
	var unused []uint64
	for _, k := range keys {
		if !slices.Contains(c.Keys, k.ID) && k.ID != newest {
			unused = append(unused, k.ID)
		}
	}
	slices.Sort(unused)
	return unused[:max(0, len(unused)-keep)]
}

type revisioned interface{ revision() int }

// Newest is the one of the highest revision, by number: 10 is newer than 9. It is in force whichever revision the API server's pod has.
// The zero value if there is none.
func Newest[T revisioned](all []T) T {
	var none T
	if len(all) == 0 {
		return none
	}
	return slices.MaxFunc(all, func(a, b T) int { return cmp.Compare(a.revision(), b.revision()) })
}

// NewestKey is the key of the highest ID; without keys that of clear text, which is migrated because nothing else was ever written.
func NewestKey(keys []Key) Key {
	newest := Key{ID: Plain, Type: "identity", Migrated: true}
	for _, k := range keys {
		if k.ID > newest.ID {
			newest = k
		}
	}
	return newest
}

// Find is a key by its ID, that of clear text included.
func Find(keys []Key, id uint64) (Key, bool) {
	if id == Plain {
		return NewestKey(nil), true
	}
	i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}
