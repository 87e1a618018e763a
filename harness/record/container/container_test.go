package container_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/container"
)

const (
	id   = "3a25064e41b24441553c487617c54b1bdaa9e04fa082f29c056905c9f39c4c88"
	next = "8c36334feecb030de033771b113dcce547512b19df8ce948e9ac0e53ad343b03"
)

func TestEngine(t *testing.T) {
	for line, want := range map[string]string{
		`{"Type":"container","Action":"pause","Actor":{"Attributes":{"name":"c-control-plane"}},"timeNano":1795264646776679408}`:                                   "cp-1 c-control-plane paused",
		`{"Type":"container","Action":"die","Actor":{"Attributes":{"name":"c-control-plane","exitCode":"137"}},"timeNano":1795264646776679408}`:                    "cp-1 c-control-plane exited, exit code 137",
		`{"Type":"container","Action":"kill","Actor":{"Attributes":{"name":"c-control-plane","signal":"9"}},"timeNano":1795264646776679408}`:                       "cp-1 c-control-plane signal, signal 9",
		`{"Type":"container","Action":"oom","Actor":{"Attributes":{"name":"c-control-plane"}},"timeNano":1795264646776679408}`:                                     "cp-1 c-control-plane oom",
		`{"Type":"container","Action":"exec_die","Actor":{"Attributes":{"name":"c-control-plane","exitCode":"0"}},"timeNano":1795264646776679408}`:                 "",
		`{"Type":"container","Action":"exec_start: sh -c kill","Actor":{"Attributes":{"name":"c-control-plane"}},"timeNano":1795264646776679408}`:                  "",
		`{"Type":"container","Action":"die","Actor":{"Attributes":{"name":"c-control-plane3","exitCode":"137"}},"timeNano":1795264646776679408}`:                   "", // of another node
		`{"Type":"network","Action":"disconnect","Actor":{"Attributes":{"name":"kind"}},"timeNano":1795264646776679408}`:                                           "",
		`{"Type":"container","Action":"start","Actor":{"Attributes":{"name":"c-control-plane","image":"kmsharness/node:v1.37.1"}},"timeNano":1795264646776679408}`: "cp-1 c-control-plane started",
	} {
		at, c, err := container.Engine("cp-1", "c-control-plane", []byte(line))
		got := ""
		if c != nil {
			got = c.String()
			if !at.Equal(time.Unix(0, 1795264646776679408)) {
				t.Errorf("%s: at %v", line, at)
			}
		}
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"", "[", `{"Type":"container","Action":"die","Actor":{"Attributes":{"name":"c-control-plane"}}}`} {
		if _, c, err := container.Engine("cp-1", "c-control-plane", []byte(line)); err == nil || c != nil {
			t.Errorf("%q: %v, %v", line, c, err)
		}
	}
}

func TestContainerd(t *testing.T) {
	const at = "2026-11-21 12:37:18.762391673 +0000 UTC k8s.io "
	for line, want := range map[string]string{
		at + `/tasks/exit {"container_id":"` + id + `","id":"` + id + `","pid":1180,"exit_status":137}`:    history.ContainerExited,
		at + `/tasks/exit {"container_id":"` + id + `","id":"exec-1","pid":1180,"exit_status":1}`:          "", // a probe's command
		at + `/tasks/start {"container_id":"` + id + `","pid":1992}`:                                       history.ContainerStarted,
		at + `/tasks/oom {"container_id":"` + id + `"}`:                                                    history.ContainerOOM,
		at + `/tasks/paused {"container_id":"` + id + `"}`:                                                 history.ContainerPaused,
		at + `/containers/create {"id":"` + id + `","image":"i"}`:                                          "",
		"2026-11-21 12:37:19 +0000 UTC k8s.io /tasks/start {\"container_id\":\"" + id + "\",\"pid\":1992}": history.ContainerStarted,
	} {
		at, of, c, err := container.Containerd([]byte(line))
		if err != nil || (c == nil) != (want == "") || c != nil && (c.State != want || of != id || at.Second() < 18) {
			t.Errorf("%s: %v, %q, %+v, %v, want %q", line, at, of, c, err, want)
		}
	}
	for _, line := range []string{"", "ctr: failed to dial", at + "/tasks/exit", at + "/tasks/exit {", at + "/tasks/exit {}", "a b c d k8s.io /tasks/start {}"} {
		if _, _, c, err := container.Containerd([]byte(line)); err == nil || c != nil || !strings.Contains(err.Error(), "events of containerd") {
			t.Errorf("%q: %+v, %v", line, c, err)
		}
	}
}

func TestInfo(t *testing.T) {
	// The value has {"Metadata":{"Config":{"annotations":{"io.kubernetes.container.restartCount":"3"}}}}.
	const kept = "eyJNZXRhZGF0YSI6eyJDb25maWciOnsiYW5ub3RhdGlvbnMiOnsiaW8ua3ViZXJuZXRlcy5jb250YWluZXIucmVzdGFydENvdW50IjoiMyJ9fX19"
	labels := func(kind string) string {
		return `"Labels":{"io.cri-containerd.kind":"` + kind + `","io.kubernetes.pod.namespace":"ns","io.kubernetes.pod.name":"p","io.kubernetes.container.name":"c"}`
	}
	i, ok, err := container.Info([]byte(`{` + labels("container") + `,"Extensions":{"x":{"type_url":"u","value":"` + kept + `"}}}`))
	if err != nil || !ok || i.Namespace != "ns" || i.Pod != "p" || i.Name != "c" || i.Restarts == nil || *i.Restarts != 3 {
		t.Errorf("%+v, %v, %v", i, ok, err)
	}
	if i, ok, err := container.Info([]byte(`{` + labels("container") + `}`)); err != nil || !ok || i.Restarts != nil {
		t.Errorf("without its configuration: %+v, %v, %v", i, ok, err)
	}
	if i, ok, err := container.Info([]byte(`{` + labels("sandbox") + `}`)); err != nil || ok {
		t.Errorf("a sandbox: %+v, %v, %v", i, ok, err)
	}
	if _, _, err := container.Info([]byte("{")); err == nil {
		t.Error("garbage was taken for a container")
	}
}

func TestLinks(t *testing.T) {
	all := container.Links("kube-apiserver-cp-1_kube-system_kms-health-reporter-" + id + ".log /var/log/pods/kube-system_kube-apiserver-cp-1_54e4/kms-health-reporter/2.log\n" +
		"nonsense\n\na_b_c.log /x\n")
	i := all[id]
	if len(all) != 1 || i.Namespace != "kube-system" || i.Pod != "kube-apiserver-cp-1" || i.Name != "kms-health-reporter" || i.Restarts == nil || *i.Restarts != 2 {
		t.Errorf("%+v", all)
	}
}

// The recorder asks once for what it does not know, and records what is of interest.
func TestRecorder(t *testing.T) {
	log, asked := history.NewLog(nil), []string{}
	one := 1
	r := &container.Recorder{Sink: log, Node: "cp-1", Source: "containerd/cp-1",
		Wanted: func(i container.Identity) bool { return i.Pod == "kube-apiserver-cp-1" },
		Known:  map[string]container.Identity{id: {Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Name: "reporter"}},
		Inspect: func(id string) (container.Identity, bool, error) {
			asked = append(asked, id)
			switch id {
			case next:
				return container.Identity{Namespace: "kube-system", Pod: "kube-apiserver-cp-1", Name: "reporter", Restarts: &one}, true, nil
			case "dns":
				return container.Identity{Namespace: "kube-system", Pod: "coredns", Name: "coredns"}, true, nil
			case "gone":
				return container.Identity{}, false, errors.New("no such container")
			}
			return container.Identity{}, false, nil
		}}
	event := func(topic, id string) error {
		return r.Containerd([]byte("2026-11-21 12:37:18.7 +0000 UTC k8s.io /tasks/" + topic + ` {"container_id":"` + id + `","id":"` + id + `","exit_status":137}`))
	}
	for _, e := range [][2]string{{"exit", id}, {"start", next}, {"exit", next}, {"start", "dns"}, {"exit", "dns"}, {"start", "sandbox"}, {"exit", "sandbox"}} {
		if err := event(e[0], e[1]); err != nil {
			t.Error(e, err)
		}
	}
	if err := event("exit", "gone"); err == nil || !strings.Contains(err.Error(), "no such container") {
		t.Error(err)
	}
	var got []string
	for _, e := range log.Events() {
		got = append(got, e.Source+": "+e.Container.String())
	}
	const at = "containerd/cp-1: cp-1 kube-apiserver-cp-1/reporter "
	if want := []string{at + "exited, exit code 137", at + "started, restart 1", at + "exited, exit code 137"}; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
	if want := []string{next, "dns", "sandbox", "gone"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`2026-11-21 12:37:18.762391673 +0000 UTC k8s.io /tasks/start {"container_id":"a","pid":1992}`))
	f.Add([]byte(`{"Type":"container","Action":"pause","timeNano":1}`))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _, _, _ = container.Containerd(b)
		_, _, _ = container.Engine("n", "c", b)
		_, _, _ = container.Info(b)
		_ = container.Links(string(b))
	})
}
