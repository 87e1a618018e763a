package sim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/operated"
	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

// Secrets of an operator are encrypted as all others are: their values are the objects as JSON, and their revisions the resource versions.

// component is the API server as the secrets and ConfigMaps of its operator name it.
func (w *world) component() revision.Component {
	if w.apiServer == "" {
		return revision.KubeAPIServer
	}
	return revision.Component(w.apiServer)
}

// configPrefix begins the names of revisions.
const configPrefix = "encryption-config-"

// owns says whether a name is that of a key or a revision of the API server's operator.
func (w *world) owns(name string) bool {
	rest, ok := strings.CutPrefix(name, keyPrefix)
	if !ok {
		rest, ok = strings.CutPrefix(name, configPrefix)
	}
	return ok && strings.HasPrefix(rest, string(w.component())+"-")
}

// keepCredentials puts into etcd what plugins need to log in, before anything is encrypted.
func (w *world) keepCredentials() {
	w.secretRevision++
	clear := encryption.Clear()
	w.secrets[operated.CredentialSecret] = &secret{revision: w.secretRevision, value: operated.CredentialContent(0), provider: clear.Name(), local: clear.Type}
}

// manage makes a request for a Secret of the operator. An update is made only to the version that was seen.
func (s *server) manage(verb exchange.Verb, o *corev1.Secret, done func(error)) {
	resource := schema.GroupResource{Resource: "secrets"}
	value, err := json.Marshal(o)
	if err != nil {
		done(fmt.Errorf("%s %s: %w", verb, o.Name, err))
		return
	}
	s.work(done, func() {
		stored := s.w.secrets[o.Name]
		switch {
		case verb == exchange.Create && stored != nil:
			done(apierrors.NewAlreadyExists(resource, o.Name))
		case verb == exchange.Create:
			_, err := s.put(verbCreate, o.Name, value)
			done(err)
		case stored == nil && verb == exchange.Delete:
			done(nil)
		case stored == nil:
			done(apierrors.NewNotFound(resource, o.Name))
		default:
			s.read(o.Name, func(read *secret, err error) { done(s.replace(verb, o, value, read, err)) })
		}
	})
}

// replace updates or deletes a Secret that was read.
func (s *server) replace(verb exchange.Verb, o *corev1.Secret, value []byte, read *secret, err error) error {
	switch {
	case err != nil:
		return err
	case s.w.secrets[o.Name] != read || verb == exchange.Update && o.ResourceVersion != strconv.FormatInt(read.revision, 10):
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, o.Name, errConflict)
	case verb == exchange.Delete:
		delete(s.w.secrets, o.Name)
		return nil
	}
	_, err = s.put(verbUpdate, o.Name, value)
	return err
}
