package kind

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kmsharness/kmsharness/harness/undertest"
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
		"reporter.image only":         {Options: Options{System: undertest.System{Reporter: undertest.Reporter{Args: "--x"}}}, ControlPlanes: 1},
	} {
		if _, err := Boot(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*", "r*")) // run directories
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestNodeReady(t *testing.T) {
	node := func(conditions ...corev1.NodeCondition) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}}
	}
	if !nodeReady(node(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})) {
		t.Error("a node that is ready was taken for one that is not")
	}
	if nodeReady(node()) || nodeReady(node(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown})) {
		t.Error("a node that is not ready was taken for one that is")
	}
}
