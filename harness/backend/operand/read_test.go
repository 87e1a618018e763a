package operand_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/operator/config"
)

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func TestReadKey(t *testing.T) {
	s := secret("encryption-key-openshift-kube-apiserver-12", nil)
	s.Annotations = map[string]string{"encryption.apiserver.operator.openshift.io/mode": "KMS",
		"encryption.apiserver.operator.openshift.io/migrated-resources":      `{"resources":[{"Group":"","Resource":"secrets"},{"Group":"route.openshift.io","Resource":"routes"}]}`,
		"encryption.apiserver.operator.openshift.io/remote-key-converged-id": "two", "encryption.apiserver.operator.openshift.io/migrated-remote-key-id": "one"}
	k, err := operand.ReadKey(s)
	if err != nil || k.ConvergedKEK != "two" || k.MigratedKEK != "one" || k.ID != 12 || k.Type != config.KMS || len(k.Migrated) != 2 || k.Migrated[0] != (schema.GroupResource{Resource: "secrets"}) {
		t.Fatalf("%+v, %v", k, err)
	}
	s.Annotations["encryption.apiserver.operator.openshift.io/migrated-resources"] = "["
	if _, err := operand.ReadKey(s); err == nil {
		t.Error("an annotation that is not JSON is accepted")
	}
	if _, err := operand.ReadKey(secret("encryption-key-x", nil)); err == nil {
		t.Error("a name without a number is accepted")
	}
}

// The stage of a switch follows from what the objects say, whichever operator wrote them.
func TestStage(t *testing.T) {
	secrets := []schema.GroupResource{{Resource: "secrets"}}
	keys := func(newest ...schema.GroupResource) []operand.Key {
		return []operand.Key{{ID: 1, Migrated: secrets}, {ID: 2, Migrated: newest}}
	}
	file := func(providers string) *operand.RollOut {
		r, err := operand.ReadRollOut([]byte("resources: [{resources: [secrets], providers: [" + providers + "]}]"))
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	const one, two = `{aescbc: {keys: [{name: "1", secret: QUJD}]}}`, `{aescbc: {keys: [{name: "2", secret: QUJD}]}}`
	const placeholder = `{aesgcm: {keys: [{name: "2", secret: AAAA}]}}`
	for _, test := range []struct {
		o    operand.Observed
		want string
	}{
		{operand.Observed{Converged: true}, ""},
		{operand.Observed{Keys: keys()}, "PreparingKey"},
		{operand.Observed{Keys: keys(), Desired: file(one + ", {identity: {}}")}, "PreparingKey"},
		{operand.Observed{Keys: keys(), Desired: file(one + "," + two + ", {identity: {}}"), Converged: true}, "DistributingReadKey"},
		{operand.Observed{Keys: keys(), Desired: file(two + "," + one + ", {identity: {}}")}, "PromotingWriteKey"},
		{operand.Observed{Keys: keys(), Desired: file(two + "," + one + ", {identity: {}}"), Converged: true}, "Migrating"},
		{operand.Observed{Keys: keys(secrets...), Desired: file(two + "," + one + ", {identity: {}}"), Converged: true}, ""},
		{operand.Observed{Keys: keys(secrets...), Desired: file(two + ", {identity: {}}")}, "RemovingOldKeys"},
		{operand.Observed{Keys: keys(), Desired: file(one + ", {identity: {}}, " + placeholder), Converged: true}, "DistributingReadKey"},
		{operand.Observed{Keys: keys(), Desired: file("{identity: {}}, " + one + ", " + placeholder), Converged: true}, "Migrating"},
	} {
		if got := test.o.Stage(); got != test.want {
			t.Errorf("%+v: stage %q, expected %q", test.o, got, test.want)
		}
	}
	rotating := keys()
	rotating[0].ConvergedKEK, rotating[1].ConvergedKEK, rotating[1].MigratedKEK = "zero", "two", "one"
	d := operand.Observed{Keys: rotating, Revision: 3, Revisions: []int{2, 3}, Ends: []string{"cp-1"}}.Decision()
	if d.ConvergedKEK != "two" || d.MigratedKEK != "one" || d.Key != 2 || len(d.Keys) != 2 || d.Keys[0] != 1 || d.Revision != 3 || d.Stage != "PreparingKey" || len(d.Ends) != 1 {
		t.Errorf("%+v", d)
	}
}
