package operand

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func operatorPod(app, name, node string, phase corev1.PodPhase, args ...string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Args: args}}}, Status: corev1.PodStatus{Phase: phase}}
}

// Pods of available nodes end, become ready or go; those of others, and the harness's own, stay as they are.
func TestPods(t *testing.T) {
	pods := []corev1.Pod{
		operatorPod(appInstaller, "installer-2-cp-1", "cp-1", corev1.PodSucceeded, "-v=2", "--revision=2"),
		operatorPod(appInstaller, "installer-3-cp-1", "cp-1", corev1.PodPending, "--revision=3"),
		operatorPod(appInstaller, "installer-3-cp-2", "cp-2", corev1.PodPending, "--revision=3"),
		operatorPod(appPruner, "revision-pruner-2-cp-1", "cp-1", corev1.PodPending),
		operatorPod(appGuard, "guard-cp-1", "cp-1", corev1.PodPending),
		operatorPod(appGuard, "guard-cp-3", "cp-3", corev1.PodRunning),
		operatorPod(appGuard, "deleted", "cp-1", corev1.PodRunning),
		operatorPod(Namespace, "kube-apiserver-cp-1", "cp-1", corev1.PodPending),
	}
	pods[6].DeletionTimestamp, pods[6].Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"kubelet"}
	var objects []runtime.Object
	for i := range pods {
		pods[i].Namespace = Namespace
		objects = append(objects, &pods[i])
	}
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	o := forTest(&notedPods{}, objects...)
	k := &kubelet{o, map[string]corev1.ConditionStatus{}}
	installed, err := k.step(t.Context(), map[string]Node{"cp-1": {}, "cp-2": {Unavailable: true}, "cp-3": {}})
	if err != nil || !maps.Equal(installed, map[string]int{"cp-1": 3}) {
		t.Errorf("installed %v %v, want revision 3 on cp-1 alone", installed, err)
	}
	for name, want := range map[string]corev1.PodPhase{"installer-3-cp-1": corev1.PodSucceeded, "installer-3-cp-2": corev1.PodPending, "revision-pruner-2-cp-1": corev1.PodSucceeded,
		"guard-cp-1": corev1.PodRunning, "guard-cp-3": corev1.PodRunning, "kube-apiserver-cp-1": corev1.PodPending} {
		if pod, err := o.Client.CoreV1().Pods(Namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil || pod.Status.Phase != want {
			t.Errorf("%s: %v, %v, want %s", name, pod.Status.Phase, err, want)
		}
	}
	if pod, err := o.Client.CoreV1().Pods(Namespace).Get(t.Context(), "deleted", metav1.GetOptions{}); err == nil {
		t.Errorf("%s is still there", pod.Name)
	}
}

// An installer pod of a kubelet counts when it has ended with success.
func TestInstalledRevisions(t *testing.T) {
	pods := []corev1.Pod{
		operatorPod(appInstaller, "installer-2-cp-1", "cp-1", corev1.PodSucceeded, "--revision=2"),
		operatorPod(appInstaller, "installer-3-cp-1", "cp-1", corev1.PodRunning, "--revision=3"),
		operatorPod(appInstaller, "installer-3-cp-2", "cp-2", corev1.PodFailed, "--revision=3"),
		operatorPod(appPruner, "revision-pruner-4-cp-1", "cp-1", corev1.PodSucceeded, "--revision=4"),
	}
	if got, err := installedRevisions(pods); err != nil || !maps.Equal(got, map[string]int{"cp-1": 2}) {
		t.Errorf("installed %v %v, want revision 2 on cp-1 alone", got, err)
	}
	for _, args := range [][]string{nil, {"--revision=x"}, {"--revision=0"}} {
		_, err := installedRevisions([]corev1.Pod{operatorPod(appInstaller, "installer-2-cp-1", "cp-1", corev1.PodSucceeded, args...)})
		if err == nil || !strings.Contains(err.Error(), "installer-2-cp-1") {
			t.Errorf("%v: %v, want an error with the pod", args, err)
		}
	}
}

// The feature gates are of the version that the operator is given, and KMS is the only one that is enabled.
func TestWholeObjects(t *testing.T) {
	all, err := readObjects(wholeObjects)
	if err != nil {
		t.Fatal(err)
	}
	if version := all[0].Object["status"].(map[string]any)["desired"].(map[string]any)["version"]; all[0].GetKind() != "ClusterVersion" || version != Version {
		t.Errorf("%s of version %v, want ClusterVersion of %s", all[0].GetKind(), version, Version)
	}
	gates := featureGates().Object["status"].(map[string]any)["featureGates"].([]any)[0].(map[string]any)
	enabled, disabled := gates["enabled"].([]any), gates["disabled"].([]any)
	if gates["version"] != Version || len(enabled) != 1 || enabled[0].(map[string]any)["name"] != "KMSEncryption" || len(disabled) < 50 {
		t.Errorf("version %v, enabled %v, %d disabled", gates["version"], enabled, len(disabled))
	}
	for _, gate := range disabled {
		if gate.(map[string]any)["name"] == "KMSEncryption" {
			t.Error("KMSEncryption is disabled, too")
		}
	}
}
