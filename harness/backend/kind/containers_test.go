package kind

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kmsharness/kmsharness/harness/history"
	events "github.com/kmsharness/kmsharness/harness/record/container"
)

// fakeDocker is an engine with one node, in which one container ends: a script in place of docker.
func fakeDocker(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

const (
	deadID  = "3a25064e41b24441553c487617c54b1bdaa9e04fa082f29c056905c9f39c4c88"
	engine  = `events) echo '{"Type":"container","Action":"pause","Actor":{"Attributes":{"name":"c-control-plane"}},"timeNano":1795264646776679408}'; exec sleep 100;;`
	oneDies = `case "$*" in
*containers/info*) exit 1;;
*find*) echo "kube-apiserver-cp-1_kube-system_reporter-` + deadID + `.log /x/0.log";;
*events*sh*|*sh*events*) echo '2026-11-21 12:37:18.7 +0000 UTC k8s.io /tasks/exit {"container_id":"` + deadID + `","id":"` + deadID + `","exit_status":137}'
`
)

// watchUntil runs a watch until the history has so many events, and ends it.
func watchUntil(t *testing.T, events int) string {
	t.Helper()
	log := history.NewLog(nil)
	enough := make(chan struct{})
	seen := 0
	defer log.Subscribe(func(history.Event) {
		if seen++; seen == events {
			close(enough)
		}
	})()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan struct{})
	go func() { defer close(ended); watchContainers(ctx, "c-control-plane", "cp-1", log, new(starting)) }()
	select {
	case <-enough:
	case <-ctx.Done():
		t.Error("too few events")
	}
	cancel()
	<-ended
	var lines []string
	for _, e := range log.Events() {
		lines = append(lines, e.Source+": "+e.Container.String())
	}
	return strings.Join(lines, "\n")
}

// Both streams are followed, and end with the watch: goleak sees what does not.
func TestWatchContainers(t *testing.T) {
	fakeDocker(t, `case "$1" in `+engine+` esac
`+oneDies+`cat >/dev/null;; esac`) // not exec: the shell keeps its output open, as ctr does
	got := watchUntil(t, 2)
	for _, want := range []string{"engine/cp-1: cp-1 c-control-plane paused", "containerd/cp-1: cp-1 kube-apiserver-cp-1/reporter exited, exit code 137"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// A stream that ends is followed again, and that there was none meanwhile is in the history.
func TestWatchContainersAgain(t *testing.T) {
	fakeDocker(t, `case "$1" in `+engine+` esac
`+oneDies+`echo "the node is off" >&2; exit 1;; esac`)
	got := watchUntil(t, 4)
	if strings.Count(got, "exited") < 2 || strings.Count(got, "unseen") != 1 || !strings.Contains(got, "the node is off") {
		t.Errorf("seen:\n%s", got)
	}
}

func TestWatched(t *testing.T) {
	for namespaceAndPod, want := range map[[2]string]bool{
		{"kube-system", "kube-apiserver-cp-1"}: true, {"kube-system", "etcd-cp-1"}: true, {aggregators, "kms-health-aggregator-7d9f"}: true,
		{"openshift-apiserver", "openshift-apiserver-cp-1-7d9f"}: true, {"openshift-oauth-apiserver", "oauth-apiserver-cp-1-7d9f"}: true,
		{"kube-system", "coredns-1"}: false, {"default", "kube-apiserver-cp-1"}: false,
	} {
		if got := watched(events.Identity{Namespace: namespaceAndPod[0], Pod: namespaceAndPod[1], Name: "c"}); got != want {
			t.Errorf("%v: %v", namespaceAndPod, got)
		}
	}
}
