package operand

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/operator/config"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Key is an encryption key of the operator.
type Key struct {
	ID   uint64
	Type config.Type
	// Migrated are the resources that lie under the key.
	Migrated []schema.GroupResource
	// TargetKEK, ConvergedKEK and MigratedKEK are as in history.Decision.
	TargetKEK, ConvergedKEK, MigratedKEK string
}

// ReadKey reads the Secret of a key.
func ReadKey(s *corev1.Secret) (Key, error) {
	id, err := strconv.ParseUint(s.Name[strings.LastIndex(s.Name, "-")+1:], 10, 64)
	if err != nil {
		return Key{}, fmt.Errorf("secret %s/%s: expected a name that ends with -N, the number of the key", s.Namespace, s.Name)
	}
	k := Key{ID: id, Type: config.Type(s.Annotations[revision.ModeAnnotation]), ConvergedKEK: s.Annotations[revision.ConvergedKEKAnnotation], MigratedKEK: s.Annotations[revision.KEKAnnotation]}
	k.TargetKEK = s.Annotations[revision.TargetKEKAnnotation]
	text := s.Annotations[revision.ResourcesAnnotation]
	if text == "" {
		return k, nil
	}
	var migrated struct {
		Resources []struct{ Group, Resource string } `json:"resources"`
	}
	if err := json.Unmarshal([]byte(text), &migrated); err != nil {
		return Key{}, fmt.Errorf("secret %s/%s: annotation %s: %w", s.Namespace, s.Name, revision.ResourcesAnnotation, err)
	}
	for _, r := range migrated.Resources {
		k.Migrated = append(k.Migrated, schema.GroupResource{Group: r.Group, Resource: r.Resource})
	}
	return k, nil
}

// Newest is the key with the highest number; the zero value if there is none.
func Newest(keys []Key) (newest Key) {
	for _, k := range keys {
		if k.ID > newest.ID {
			newest = k
		}
	}
	return newest
}
