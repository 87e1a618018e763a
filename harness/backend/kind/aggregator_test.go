package kind

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// seated are the pods in two seats after pods were assigned one after another.
func seated(t *testing.T, rounds ...map[string]string) [2]string {
	t.Helper()
	seats := []*seat{{dir: t.TempDir()}, {dir: t.TempDir()}}
	for _, pods := range rounds {
		if err := assign(seats, pods); err != nil {
			t.Fatal(err)
		}
	}
	one, _ := seats[0].pod()
	two, _ := seats[1].pod()
	return [2]string{one, two}
}

func TestAPodKeepsItsSeat(t *testing.T) {
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
		if got := seated(t, first, test.then); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestAnIncompleteDeploymentIsNotSeated(t *testing.T) {
	seats := []*seat{{dir: t.TempDir()}, {dir: t.TempDir()}}
	for _, pods := range []map[string]string{{}, {"a": "cp-1"}, {"a": "cp-1", "b": "cp-1", "c": "cp-1"}} {
		if err := assign(seats, pods); err == nil {
			t.Errorf("%v were seated", pods)
		}
	}
	if name, _ := seats[0].pod(); name != "" {
		t.Errorf("%s has a seat", name)
	}
}
