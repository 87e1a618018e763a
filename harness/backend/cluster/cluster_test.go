package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/supervisor"
)

func node(name string, isReady corev1.ConditionStatus, labels ...string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		n.Labels[l] = ""
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: isReady}}
	return n
}

func TestPlace(t *testing.T) {
	unschedulable := node("drained", corev1.ConditionTrue, labelControlPlane)
	unschedulable.Spec.Unschedulable = true
	tainted := node("gpu", corev1.ConditionTrue)
	tainted.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	one := node("c1", corev1.ConditionTrue, labelControlPlane)
	for name, test := range map[string]struct {
		nodes []corev1.Node
		want  string
	}{
		"one node has all":               {[]corev1.Node{one}, "c1,c1,c1"},
		"control planes, and no workers": {[]corev1.Node{node("w1", corev1.ConditionTrue), one, node("c2", corev1.ConditionTrue, labelControlPlane)}, "c1,c2,c1"},
		"those that are ready":           {[]corev1.Node{unschedulable, node("c2", corev1.ConditionFalse, labelControlPlane), one}, "c1,c1,c1"},
		"workers of a managed cluster":   {[]corev1.Node{tainted, node("w1", corev1.ConditionTrue), node("w2", corev1.ConditionTrue)}, "w1,w2,w1"},
	} {
		got, err := place(test.nodes, 3)
		if strings.Join(got, ",") != test.want || err != nil {
			t.Errorf("%s: %v, %v, want %s", name, got, err, test.want)
		}
	}
	if _, err := place([]corev1.Node{unschedulable, tainted}, 1); err == nil || !strings.Contains(err.Error(), "none of the 2 nodes") {
		t.Errorf("no node: %v", err)
	}
}

func TestDifference(t *testing.T) {
	gone := func(name string) bool { return name == "cp-2" }
	out, in := difference([]string{"cp-1", "cp-2", "cp-3"}, []string{"cp-1", "cp-2", "cp-4"}, gone)
	if strings.Join(out, ",") != "cp-2,cp-4" || strings.Join(in, ",") != "cp-2,cp-3" {
		t.Errorf("out %v, in %v", out, in)
	}
}

// Every object of a run can be found by its label, and none that is not in its namespace has a name that another run would use.
func TestObjectsOfARun(t *testing.T) {
	a, b := newRun("test"), newRun("test")
	if a == b || !strings.HasPrefix(a.name, "test-") {
		t.Errorf("names of runs: %s, %s", a.name, b.name)
	}
	img := imagesOf(Placing{ImagePrefix: "registry/", ImageTag: "v1"})
	objects := append(a.agentObjects(nil), a.nodePod("cp-1", "cp-1", "n", img), a.hubPod("n", img))
	for _, o := range objects {
		if o.GetLabels()[labelRun] != a.name {
			t.Errorf("%T %s has labels %v", o, o.GetName(), o.GetLabels())
		}
		if o.GetNamespace() != a.name && !strings.HasSuffix(o.GetName(), a.name) {
			t.Errorf("%T %s/%s belongs to every run", o, o.GetNamespace(), o.GetName())
		}
	}
	manifests, err := live.Traits{Namespace: a.name, Suffix: a.suffix()}.Manifests("kubeapiserver", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range manifests {
		if o.GetKind() != "CustomResourceDefinition" && o.GetNamespace() != a.name && !strings.HasSuffix(o.GetName(), a.name) {
			t.Errorf("%s %s/%s belongs to every run", o.GetKind(), o.GetNamespace(), o.GetName())
		}
		if gvr := strings.ToLower(o.GetKind()); o.GetNamespace() == "" && !slices.ContainsFunc(removedNames(), func(r string) bool { return strings.HasPrefix(r, gvr[:len(gvr)-1]) }) {
			t.Errorf("%s %s is not removed", o.GetKind(), o.GetName())
		}
	}
}

func removedNames() (names []string) {
	for _, r := range removed() {
		names = append(names, r.Resource)
	}
	return names
}

// A program under test can neither write the log of requests nor read the agent's token and the account that impersonates.
func TestProgramsSeeTheirOwnVolumes(t *testing.T) {
	pods := []*corev1.Pod{newRun("test").nodePod("cp-1", "cp-1", "n", podImages{}), newRun("test").hubPod("n", podImages{})}
	for _, p := range pods {
		if p.Spec.AutomountServiceAccountToken == nil || *p.Spec.AutomountServiceAccountToken {
			t.Errorf("pod %s: every container has the token of the account", p.Name)
		}
		for _, c := range p.Spec.Containers {
			var volumes []string
			for _, m := range c.VolumeMounts {
				volumes = append(volumes, m.Name)
			}
			secret := slices.Contains(volumes, volumeSecret) || slices.Contains(volumes, volumeAccount) || slices.Contains(volumes, "agent")
			if secret != (c.Name == "agent") {
				t.Errorf("container %s of pod %s sees %v", c.Name, p.Name, volumes)
			}
			if c.Name == unitReporter && slices.Contains(volumes, volumePlugins) {
				t.Errorf("the reporter can write the journals of plugins: %v", volumes)
			}
		}
	}
}

func TestAgentsImpersonateOnlyProgramsUnderTest(t *testing.T) {
	for _, rule := range newRun("test").impersonation([]string{"cp-1"}).Rules {
		if len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, "system:masters") {
			t.Errorf("%+v", rule)
		}
		if rule.Resources[0] == "users" && !slices.Contains(rule.ResourceNames, contract.ReporterIdentity("cp-1")) {
			t.Errorf("%+v lacks the reporter", rule)
		}
	}
}

func TestAClusterWithTheCRDsIsRefused(t *testing.T) {
	if err := errHas("kubeapiservers.operator.openshift.io", ""); !strings.Contains(err.Error(), "objects that are not this run's") {
		t.Error(err)
	}
	if err := errHas("kubeapiservers.operator.openshift.io", "kmsharness-abc"); !strings.Contains(err.Error(), "kmsharness down --run kmsharness-abc") {
		t.Error(err)
	}
}

func TestLeftAreTheNewRunsOfThisMachine(t *testing.T) {
	before := []Run{{Name: "old", Host: "here"}}
	after := []Run{{Name: "old", Host: "here"}, {Name: "killed", Host: "here"}, {Name: "somebody's", Host: "there"}}
	if got := left(before, after, "here"); len(got) != 1 || got[0] != "killed" {
		t.Errorf("%v", got)
	}
}

func TestWaitingNamesTheImage(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cp-1"}}
	if got := waiting([]corev1.Pod{pod}); got != "" {
		t.Errorf("nothing waits: %s", got)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", Image: "x/agent:dev", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
	if got := waiting([]corev1.Pod{pod}); !strings.Contains(got, "image x/agent:dev is not on the node") {
		t.Error(got)
	}
	if err := running(&pod); err == nil || !strings.Contains(err.Error(), "ErrImagePull") {
		t.Error(err)
	}
}

func TestUnsupported(t *testing.T) {
	for want, a := range map[string]scenario.Action{
		"":                             &scenario.Inject{Fault: "hang", Method: "Status"},
		"do not encrypt":               &scenario.Encryption{Type: scenario.TypeKMS},
		"a link from client":           &scenario.Link{From: "client", To: history.RoleLoadBalancer, Mode: "cut"},
		"apiserver: it is a part":      &scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: history.RoleAPIServer}},
		"node: it is a part":           &scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: history.RoleNode}},
		"etcd: it is a part":           &scenario.Process{Do: scenario.VerbPause, Target: scenario.Selector{Role: history.RoleEtcd}},
		"the supervisor of the contai": &scenario.Process{Do: scenario.VerbRestart, With: scenario.WithContainer, Target: scenario.Selector{Role: history.RoleReporter}},
	} {
		if got := unsupported(a); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%T: %q, want %q", a, got, want)
		}
	}
	for _, a := range []scenario.Action{
		&scenario.Link{From: history.RoleReporter, To: history.RoleAPIServer, Mode: "cut"},
		&scenario.Process{Do: scenario.VerbKill, Target: scenario.Selector{Role: history.RoleReporter}},
		&scenario.Process{Do: scenario.VerbPause, Target: scenario.Selector{Role: history.RoleAggregator}},
		&scenario.Node{Remove: "cp-2"},
	} {
		if got := unsupported(a); got != "" {
			t.Errorf("%T: %s", a, got)
		}
	}
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"DNS label":        {Placing: Placing{NamespacePrefix: "My_Run"}},
		"at most 20":       {Placing: Placing{NamespacePrefix: strings.Repeat("a", 21)}},
		"expected least":   {SystemUnderTest: live.SystemUnderTest{ReporterIdentity: history.IdentityAdmin}},
		"own image":        {},
		"plugin arguments": {PluginArgs: "'"},
	} {
		_, err := New(o)
		if want == "own image" {
			if err != nil {
				t.Errorf("the zero value: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

func TestStatusOf(t *testing.T) {
	for state, want := range map[string]live.Status{
		supervisor.Running: {Phase: live.Running, PID: 7}, supervisor.Paused: {Phase: live.Paused, PID: 7}, supervisor.Waiting: {Phase: live.Never},
		supervisor.Killed: {Phase: live.Ended}, supervisor.Exited: {Phase: live.Ended, Crashed: true},
	} {
		if got := statusOf(supervisor.State{State: state, PID: 7}); got != want {
			t.Errorf("%s: %+v, want %+v", state, got, want)
		}
	}
}

func TestWhatIsNotTheHarnesssIsNotTouched(t *testing.T) {
	var s live.Unit = foreign{}
	if err := errors.Join(s.Kill(t.Context())); !errors.Is(err, errForeign) || s.Status().Phase != live.Running {
		t.Errorf("%v", err)
	}
}
