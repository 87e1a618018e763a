package kind

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/netfault"
	"github.com/kmsharness/kmsharness/harness/scenario"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/host"
)

// operatorPlane is a control plane whose operator under test has an image; without one it is a program of this machine.
func operatorPlane(t *testing.T, image string) *controlPlane {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // a test's own directory has too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	programs := cluster.NewPrograms(t.TempDir(), func(string) {})
	p := newControlPlane(bootSpec{dir: dir, programs: programs, archives: archives{images: images{aggregator: "a", operatorUnderTest: image}}})
	if p.front, err = netfault.NewLink(host.Host{}, "clients", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.front.Close(), p.Supervisor.Close(context.Background()), p.units.journals.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(p.layout.deployed(history.RoleOperator).dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// An operator that is an image has a Deployment of one pod; aggregators have theirs with or without it.
func TestDeploymentsWithAnOperatorUnderTest(t *testing.T) {
	for image, want := range map[string][]string{"": {"kms-health-aggregator"}, "mine": {"kms-health-aggregator", "encryption-operator"}} {
		p := operatorPlane(t, image)
		var got []string
		for _, d := range p.deployments() {
			got = append(got, d.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with image %q: Deployments %q, want %q", image, got, want)
		}
	}
	p := operatorPlane(t, "mine")
	pod := p.operator.object(p.archives.images.of(p.operator.role)).Spec
	c := pod.Template.Spec.Containers[0]
	words := strings.Join(c.Command, " ")
	if *pod.Replicas != 1 || c.Name != "operator" || c.Image != "mine" ||
		!strings.HasPrefix(words, "/var/lib/kmsharness-shared/kmsharness-supervisor --control unix:///var/lib/kmsharness-shared/operator/$(POD).sock ") ||
		!strings.HasSuffix(words, " --log /var/lib/kmsharness-shared/operator/operator.log") {
		t.Errorf("%d replicas, container %s of %s: %s", *pod.Replicas, c.Name, c.Image, words)
	}
	if other := p.aggregators.object(p.archives.images.of(p.aggregators.role)).Spec.Template.Spec.Containers[0]; other.Image != "a" || slices.Contains(other.Command, "/var/lib/kmsharness-shared/operator/operator.log") {
		t.Errorf("the aggregator is %+v", other)
	}
}

// The operator is a unit of its pod, whose command and changes are those of the operator, also in the pod that a Deployment makes after a drain.
func TestOperatorUnderTestInItsPod(t *testing.T) {
	p := operatorPlane(t, "mine")
	var recorded []string
	p.Listen(func(_ time.Time, payload any) {
		if one, ok := payload.(*history.Process); ok {
			recorded = append(recorded, cluster.NameOf(*one)+" "+one.State)
		}
	})
	if err := p.operator.put(map[string]string{"first": "cp-1"}); err != nil {
		t.Fatal(err)
	}
	at := p.places().OperatorPlace()
	if at.Dir != filepath.Join(p.layout.shared(), "operator-config") || at.SeenDir != inNodeShared+"/operator-config" || at.LogFile != filepath.Join(p.layout.shared(), "operator", "operator.log") {
		t.Errorf("place %+v", at)
	}
	u := at.Unit(history.Process{Role: history.RoleOperator}, func(context.Context) (cluster.Command, error) {
		return cluster.Command{Program: "/o", Args: []string{"--kubeconfig", "/k"}}, nil
	})
	if err := p.operator.put(map[string]string{"second": "cp-2"}); err != nil {
		t.Fatal(err)
	}
	if err := u.Start(t.Context()); err == nil {
		t.Error("it started in a pod that is not there")
	}
	if got := commandIn(t, p.layout.deployed(history.RoleOperator), "second"); !slices.Equal(got, []string{"/o", "--kubeconfig", "/k"}) {
		t.Errorf("command %q", got)
	}
	line := `{"time":"2026-11-22T10:00:00Z","state":"started","pid":7}` + "\n"
	if err := os.WriteFile(p.layout.deployed(history.RoleOperator).file(supervisorJournal("second")), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.units.journals.Poll(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(recorded, ", "); got != "operator started" {
		t.Errorf("recorded %s", got)
	}
}

// An operator that is a command is a process of this machine.
func TestOperatorUnderTestOnThisMachine(t *testing.T) {
	p := operatorPlane(t, "")
	if at := p.places().OperatorPlace(); at.Dir != p.layout.dir || at.SeenDir != at.Dir || at.LogFile != "" {
		t.Errorf("place %+v", at)
	}
}

// The entrypoint of an operator's image runs with the arguments that were given, or with those of this project's operator.
func TestOperatorImage(t *testing.T) {
	fakeDocker(t, `case "$*" in
save*) ;;
*" o:dev") echo '["/o", "operate it"]';;
*" p:dev") echo '["o"]';;
*) echo "No such image: $5" >&2; exit 1;;
esac
`)
	dir := t.TempDir()
	for args, want := range map[string]string{
		"":                          "'/o' 'operate it' --kubeconfig={kubeconfig} --operator={operator} --encrypt={encrypt} --interval={interval} --before-kms={beforeKMS} --settle=30s --retry=2s --keep=3 --check-timeout={checkTimeout}",
		"--kubeconfig {kubeconfig}": "'/o' 'operate it' --kubeconfig {kubeconfig}",
	} {
		var a archives
		s := undertest.System{Operator: undertest.Operator{Image: "o:dev", Args: args}}
		err := a.takeUnderTest(t.Context(), &s, dir)
		got := s.Operator.Command
		if err != nil || got != want || a.images.operatorUnderTest != "o:dev" || !slices.Equal(a.files, []string{dir + "/operator-under-test.tar"}) {
			t.Errorf("command %q, %+v, %v", got, a, err)
		}
	}
	for image, want := range map[string]string{"none": "build it or pull it first", "p:dev": "expected an entrypoint that is an absolute path"} {
		err := new(archives).takeUnderTest(t.Context(), &undertest.System{Operator: undertest.Operator{Image: image}}, dir)
		if err == nil || !strings.HasPrefix(err.Error(), "operator.image") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", image, err)
		}
	}
}

// The pods of the aggregators and of the operator send to the load balancer from the same network.
func TestLinkOfAggregatorsBesideAnOperatorImage(t *testing.T) {
	cut := []scenario.Step{{Action: &scenario.Link{From: history.RoleAggregator, To: history.RoleLoadBalancer, Mode: "cut"}}}
	for image, unsupported := range map[string]bool{"": false, "i": true} {
		b, err := New(Options{System: undertest.System{Operator: undertest.Operator{Image: image}}})
		if err != nil {
			t.Fatal(err)
		}
		for lifecycle, want := range map[string]bool{"": false, scenario.LifecycleOperator: unsupported} {
			got := b.Unsupported(&scenario.Scenario{Topology: scenario.Topology{Lifecycle: lifecycle}, Steps: cut})
			if (len(got) > 0) != want {
				t.Errorf("with image %q and lifecycle %q: unsupported %q", image, lifecycle, got)
			}
		}
	}
}
