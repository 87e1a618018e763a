package sim

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/operator/encryption"
	"github.com/kmsharness/kmsharness/operator/exchange"
	"github.com/kmsharness/kmsharness/operator/revision"
)

func (l *lab) managed(verb exchange.Verb, id uint64, version string) (err error) {
	l.t.Helper()
	o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: revision.KeyName(l.w.component(), id), Namespace: revision.Namespace, ResourceVersion: version}}
	l.until(func(done func()) { l.manage(verb, o, func(e error) { err = e; done() }) })
	return err
}

// A key that was made twice, or that has changed meanwhile, is refused. It is encrypted as any Secret, and written anew when that is stale.
func TestSecretsOfAnOperator(t *testing.T) {
	l := newLab(t).started()
	name := revision.KeyName(l.w.component(), 1)
	if err := l.managed(exchange.Update, 1, "1"); !apierrors.IsNotFound(err) {
		t.Errorf("update of what is not there: %v", err)
	}
	if err := l.managed(exchange.Create, 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.managed(exchange.Create, 1, ""); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	if s := l.w.secrets[name]; s.provider != "kms-1" || s.kekID == "" || l.w.encrypts.objectName(name) != "secrets/openshift-config-managed/"+name {
		t.Errorf("%s lies under %q %q", l.w.encrypts.objectName(name), s.provider, s.kekID)
	}
	if err := l.managed(exchange.Update, 1, "1"); err != nil {
		t.Errorf("update of what was seen: %v", err)
	}
	if err := l.managed(exchange.Update, 1, "1"); !apierrors.IsConflict(err) {
		t.Errorf("update of an old version: %v", err)
	}
	l.envelope.configure(encryption.List{encryption.Clear(), {Type: encryption.KMS, KeyID: "1"}})
	l.pass(2 * time.Second)
	l.until(func(done func()) { l.touch(name, func(error) { done() }) })
	if s := l.w.secrets[name]; s.provider != "identity" || s.revision != 3 {
		t.Errorf("after a migration to clear text it lies under %q, in revision %d", s.provider, s.revision)
	}
	for range 2 {
		if err := l.managed(exchange.Delete, 1, ""); err != nil || l.w.secrets[name] != nil {
			t.Errorf("delete: %v", err)
		}
	}
}
