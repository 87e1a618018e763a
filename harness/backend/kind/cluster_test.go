package kind

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What cannot be booted leaves no run directory, and says why.
func TestBootFails(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	fakeDocker(t, "echo 'no such engine' >&2; exit 1\n")
	for want, o := range map[string]BootOptions{
		"no container engine answers": {Options: Options{NodeImage: "i"}, ControlPlanes: 1},
		"at most 5 were tried":        {ControlPlanes: 6},
		"4 plugins on a node":         {ControlPlanes: 1, KeyIDs: []string{"1", "2", "3", "9"}},
		"without --reporter-image":    {Options: Options{ReporterArgs: "--x"}, ControlPlanes: 1},
	} {
		if _, err := Boot(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAllReady(t *testing.T) {
	node := func(name string, status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	if err := allReady([]corev1.Node{node("cp-1", corev1.ConditionTrue)}); err != nil {
		t.Error(err)
	}
	if err := allReady(nil); err == nil {
		t.Error("no node at all was taken for ready")
	}
	err := allReady([]corev1.Node{node("cp-1", corev1.ConditionTrue), node("cp-2", corev1.ConditionUnknown), {ObjectMeta: metav1.ObjectMeta{Name: "cp-3"}}})
	if err == nil || err.Error() != "not ready: cp-2, cp-3" {
		t.Error(err)
	}
}
