package virtualcluster_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kmsharness/kmsharness/harness/virtualcluster"
)

// A policy of which only what is required is set judges updates of objects in a namespace, which need not exist.
func TestPolicyWithDefaults(t *testing.T) {
	virtualcluster.Run(t, virtualcluster.Options{}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		config, err := c.Host("user").Config("cp-1")
		g.Expect(err).NotTo(HaveOccurred())
		client := kubernetes.NewForConfigOrDie(config)
		rule := admissionregistration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}}
		_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, &admissionregistration.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: "frozen"},
			Spec: admissionregistration.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistration.MatchResources{ResourceRules: []admissionregistration.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistration.RuleWithOperations{Operations: []admissionregistration.OperationType{admissionregistration.Update}, Rule: rule},
				}}},
				Validations: []admissionregistration.Validation{{Expression: "object.metadata.name != 'a'", Message: "a is frozen"}},
			},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistration.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "frozen"},
			Spec:       admissionregistration.ValidatingAdmissionPolicyBindingSpec{PolicyName: "frozen", ValidationActions: []admissionregistration.ValidationAction{admissionregistration.Deny}},
		}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		secrets := client.CoreV1().Secrets("default")
		for _, name := range []string{"a", "b"} {
			s, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			want := Succeed()
			if name == "a" {
				want = MatchError(ContainSubstring("a is frozen"))
			}
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{}) // changes nothing
			g.Expect(err).To(want)
			s.Labels = map[string]string{"a": "b"}
			_, err = secrets.Update(ctx, s, metav1.UpdateOptions{})
			g.Expect(err).To(want)
		}
	})
}
