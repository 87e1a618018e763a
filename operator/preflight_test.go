package operator

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/operator/core"
)

// TestResultOfAPod: a result is believed as far as a cluster could go on with it, and a pod that ended without one has failed.
func TestResultOfAPod(t *testing.T) {
	said := func(p core.Preflight) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: PreflightConditions(p, metav1.Now())}}
	}
	ended := func(end *corev1.ContainerStateTerminated) *corev1.Pod {
		pod := said(core.Preflight{Hash: "b"})
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
		if end != nil {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: end}}}
		}
		return pod
	}
	succeeded := ended(&corev1.ContainerStateTerminated{})
	succeeded.Status.Phase = corev1.PodSucceeded
	long := strings.Repeat("k", contract.MaxKEKIDBytes+1)
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		want    core.Preflight
		message string
		done    bool
	}{
		"passed":                {said(core.Preflight{Hash: "a", OK: true, KEK: "kek"}), core.Preflight{OK: true, KEK: "kek"}, "", true},
		"failed":                {said(core.Preflight{Hash: "a", Message: "no KMS"}), core.Preflight{}, "no KMS", true},
		"failed after Status":   {said(core.Preflight{Hash: "a", KEK: "kek", Message: "no KMS"}), core.Preflight{KEK: "kek"}, "no KMS", true},
		"passed without a KEK":  {said(core.Preflight{Hash: "a", OK: true}), core.Preflight{}, "key_id has 0 bytes", true},
		"passed with a long id": {said(core.Preflight{Hash: "a", OK: true, KEK: long}), core.Preflight{}, "key_id has 1025 bytes", true},
		"of another hash":       {said(core.Preflight{Hash: "b", OK: true, KEK: "kek"}), core.Preflight{}, "", false},
		"under way":             {&corev1.Pod{}, core.Preflight{}, "", false},
		"ended with words":      {ended(&corev1.ContainerStateTerminated{ExitCode: 2, Message: "unknown flag\n--x"}), core.Preflight{}, "without a result: unknown flag --x", true},
		"ended without words":   {ended(&corev1.ContainerStateTerminated{ExitCode: 2}), core.Preflight{}, "without a result: exit code 2", true},
		"ended well":            {succeeded, core.Preflight{}, "without a result: exit code 0", true},
		"never ran":             {ended(nil), core.Preflight{}, "without a result: Evicted", true},
	} {
		got, done := resultOf(c.pod, "a")
		if done != c.done || got.OK != c.want.OK || got.KEK != c.want.KEK || got.Hash != "a" || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %+v, done %v", name, got, done)
		}
	}
}
