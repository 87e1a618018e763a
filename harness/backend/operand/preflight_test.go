package operand

import (
	"context"
	"slices"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/kmsharness/kmsharness/operator"
	"github.com/kmsharness/kmsharness/operator/config"
)

// endedPods are pods whose checks end at once.
type endedPods struct {
	Pods
	end corev1.ContainerStateTerminated
}

func (p endedPods) Check(context.Context, *corev1.Pod, config.Plugin) corev1.ContainerStateTerminated {
	return p.end
}

// The end of a pre-flight pod is shown as a kubelet does: the conditions are those that the program wrote, also none.
func TestPreflightPodEnds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := configv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	result := []corev1.PodCondition{{Type: operator.PreflightResult, Status: corev1.ConditionFalse, Message: "Encrypt fails"}}
	for _, test := range []struct {
		code       int32
		conditions []corev1.PodCondition
		phase      corev1.PodPhase
		message    string
	}{
		{2, nil, corev1.PodFailed, "why"},
		{1, result, corev1.PodFailed, ""},
		{0, result, corev1.PodSucceeded, ""},
		{0, nil, corev1.PodSucceeded, "why"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: operator.PreflightName},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "check"}}}, Status: corev1.PodStatus{Conditions: test.conditions}}
		o := forTest(endedPods{end: corev1.ContainerStateTerminated{ExitCode: test.code, Message: "why"}}, pod)
		o.Dynamic = dynamicfake.NewSimpleDynamicClient(scheme, &configv1.APIServer{ObjectMeta: metav1.ObjectMeta{Name: cr}})
		p := &preflightPods{Options: o}
		if err := p.check(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		now, err := o.Client.CoreV1().Pods(Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil || now.Status.Phase != test.phase || !slices.Equal(now.Status.Conditions, test.conditions) || len(now.Status.ContainerStatuses) != 1 {
			t.Fatalf("exit code %d: %+v, %v", test.code, now.Status, err)
		}
		if end := now.Status.ContainerStatuses[0].State.Terminated; end == nil || end.ExitCode != test.code || end.Message != test.message {
			t.Errorf("exit code %d: %+v", test.code, end)
		}
	}
}
