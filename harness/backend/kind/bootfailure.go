package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kmsharness/kmsharness/harness/backend/live"
)

const (
	// explainTimeout bounds what is kept of a cluster that did not come up, and partTimeout each part of it.
	explainTimeout = time.Minute
	partTimeout    = 20 * time.Second
)

// nodeParts are what is asked of a node, by the file that it is written to.
var nodeParts = [][2]string{
	{"kubelet.log", "journalctl --no-pager --output=short-precise --unit=kubelet --lines=5000"},
	{"containers.txt", "crictl pods && crictl ps --all || { ctr --namespace=k8s.io containers list; ctr --namespace=k8s.io tasks list; }"},
	{"containers.log", `for f in /var/log/pods/*/*/*.log; do echo "==> $f"; tail -n 200 "$f"; done`},
}

// evidence is the folder for what is kept of a cluster that did not come up.
type evidence string

// keep writes a text to a file of the folder; it is for people, so nothing fails if that cannot be done.
func (e evidence) keep(name, text string) {
	file := filepath.Join(string(e), name)
	if os.MkdirAll(filepath.Dir(file), 0o755) == nil {
		_ = os.WriteFile(file, []byte(text+"\n"), 0o644)
	}
}

// keepOutput keeps what a command prints, or why that cannot be had.
func (e evidence) keepOutput(ctx context.Context, name, command string, args ...string) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	text, err := run(ctx, nil, command, args...)
	if err != nil {
		text = "not to be had: " + err.Error()
	}
	e.keep(name, text)
}

// explain keeps what tells why a cluster did not come up, before it is deleted, and returns the error in one line. Every part is kept as far
// as it can be had.
func explain(ctx context.Context, p *controlPlane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	e := evidence(dir)
	e.keep("error", strings.TrimSpace(failed.Error()+"\n"+p.kindSaid))
	containers, err := everyContainer(ctx, p.clusters.names())
	if err != nil {
		e.keep("containers-unknown.txt", err.Error())
	}
	var all errgroup.Group
	for _, c := range containers {
		all.Go(func() error { e.ofContainer(ctx, c); return nil })
	}
	all.Go(func() error { e.ofMachine(ctx, p.began); return nil })
	_ = all.Wait() // it has no errors
	if err := live.CopyLogs(bootLogs(p), dir); err != nil {
		e.keep("logs-missing.txt", err.Error())
	}
	cause, _, _ := strings.Cut(failed.Error(), "\n")
	return cause
}

// everyContainer is each container of clusters, also of one that kind did not finish.
func everyContainer(ctx context.Context, clusters []string) (names []string, err error) {
	for _, c := range clusters {
		some, err := containersOf(ctx, c, "--all", "--format", "{{.Names}}")
		if err != nil {
			return names, err
		}
		names = append(names, some...)
	}
	return names, nil
}

// ofContainer keeps what a node, or the load balancer, can tell.
func (e evidence) ofContainer(ctx context.Context, name string) {
	e.keepOutput(ctx, filepath.Join(name, "console.log"), "sh", "-c", `docker logs --tail 200 "$0" 2>&1`, name)
	if strings.HasSuffix(name, "-external-load-balancer") {
		return
	}
	for _, part := range nodeParts {
		e.keepOutput(ctx, filepath.Join(name, part[0]), "docker", "exec", name, "sh", "-c", "{ "+part[1]+"; } 2>&1; true")
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if err := container(name).copyOut(ctx, filepath.Dir(manifest), filepath.Join(string(e), name, "manifests")); err != nil {
		e.keep(filepath.Join(name, "manifests.txt"), "not to be had: "+err.Error())
	}
}

// ofMachine keeps what the engine did since the boot began, and how much room the machine has.
func (e evidence) ofMachine(ctx context.Context, began time.Time) {
	e.keepOutput(ctx, "engine-ps.txt", "docker", "ps", "--all", "--no-trunc")
	// The engine numbers times by its own clock, which is this machine's.
	e.keepOutput(ctx, "engine-events.txt", "docker", "events", "--since", fmt.Sprint(began.Unix()), "--until", fmt.Sprint(time.Now().Unix()))
	e.keepOutput(ctx, "machine.txt", "sh", "-c", "cat /proc/loadavg; head -n 5 /proc/meminfo; df -h; grep . /proc/sys/fs/inotify/*")
}

// bootLogs are the folders with logs of programs under test, also of nodes that are not known yet.
func bootLogs(p *controlPlane) []live.LogDir {
	all := p.layout.sharedLogs()
	for _, name := range nodeNames(p.shape.nodes) {
		prefixes := map[string]string{"": name + "-"}
		for _, f := range p.fleets {
			prefixes[f.Stub.APIServer] = f.Stub.APIServer + "-" + name + "-"
		}
		for apiServer, prefix := range prefixes {
			all = append(all, p.layout.node(name).pod(apiServer).logs(prefix)...)
		}
	}
	return all
}
