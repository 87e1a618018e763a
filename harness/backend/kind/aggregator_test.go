package kind

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/history"
)

func TestRunningPods(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: "cp-1"}, Status: corev1.PodStatus{Phase: phase}}
	}
	ending := pod("c", corev1.PodRunning)
	ending.DeletionTimestamp = &metav1.Time{}
	got := running([]corev1.Pod{pod("a", corev1.PodRunning), pod("b", corev1.PodPending), ending})
	if !maps.Equal(got, map[string]string{"a": "cp-1"}) {
		t.Errorf("%v: expected the one that runs and stays", got)
	}
}

// podsOf are the pods of two replicas after pods were assigned one after another.
func podsOf(t *testing.T, rounds ...map[string]string) [2]string {
	t.Helper()
	d := newDeployment(aggregators, history.RoleAggregator, 2, t.TempDir(), &units{})
	for _, pods := range rounds {
		if err := d.put(pods); err != nil {
			t.Fatal(err)
		}
	}
	return [2]string{d.replicas[0].pod, d.replicas[1].pod}
}

func TestAPodKeepsItsReplica(t *testing.T) {
	first := map[string]string{"b": "cp-1", "c": "cp-1"}
	for name, test := range map[string]struct {
		then map[string]string
		want [2]string
	}{
		"nothing changed":       {first, [2]string{"b", "c"}},
		"the first was moved":   {map[string]string{"c": "cp-1", "z": "cp-2"}, [2]string{"z", "c"}},
		"the second was moved":  {map[string]string{"b": "cp-1", "a": "cp-2"}, [2]string{"b", "a"}},
		"both were":             {map[string]string{"y": "cp-2", "x": "cp-3"}, [2]string{"x", "y"}},
		"it moved and is alike": {map[string]string{"b": "cp-2", "c": "cp-2"}, [2]string{"b", "c"}},
	} {
		if got := podsOf(t, first, test.then); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAnIncompleteDeploymentIsNotAssigned(t *testing.T) {
	d := newDeployment(aggregators, history.RoleAggregator, 2, t.TempDir(), &units{})
	for _, pods := range []map[string]string{{}, {"a": "cp-1"}, {"a": "cp-1", "b": "cp-1", "c": "cp-1"}} {
		if err := d.put(pods); err == nil {
			t.Errorf("%v were assigned", pods)
		}
	}
	if name := d.replicas[0].pod; name != "" {
		t.Errorf("%s has a replica", name)
	}
}
