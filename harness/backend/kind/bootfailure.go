package kind

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	{sourceKubelet, "journalctl --no-pager --output=short-precise --unit=kubelet --lines=5000"},
	{"containers.txt", "crictl pods && crictl ps --all || { ctr --namespace=k8s.io containers list; ctr --namespace=k8s.io tasks list; }"},
	{sourceContainers, `for f in /var/log/pods/*/*/*.log; do echo "` + sectionHead + `$f"; tail -n 200 "$f"; done`},
}

// evidence is what is kept of a cluster that did not come up.
type evidence struct {
	dir string

	mu   sync.Mutex
	said []source
}

// keep writes a text to a file of the folder; it is for people, so nothing fails if that cannot be done.
func (e *evidence) keep(name, text string) {
	file := filepath.Join(e.dir, name)
	if os.MkdirAll(filepath.Dir(file), 0o755) == nil {
		_ = os.WriteFile(file, []byte(text+"\n"), 0o644)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, source{name, text})
}

// keepOutput keeps what a command prints, or why that cannot be had.
func (e *evidence) keepOutput(ctx context.Context, name, command string, args ...string) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	text, err := run(ctx, nil, command, args...)
	if err != nil {
		text = "not to be had: " + err.Error()
	}
	e.keep(name, text)
}

// explain keeps what tells why a cluster did not come up, before it is deleted, and names the likely cause. Every part is kept as far
// as it can be had.
func explain(ctx context.Context, p *plane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	e := &evidence{dir: dir}
	e.keep(sourceError, strings.TrimSpace(failed.Error()+"\n"+p.kindSaid))
	containers, err := p.everyContainer(ctx)
	if err != nil {
		e.keep("containers-unknown.txt", err.Error())
	}
	var all errgroup.Group
	for _, c := range containers {
		all.Go(func() error { e.ofContainer(ctx, c); return nil })
	}
	all.Go(func() error { e.ofMachine(ctx, p.began); return nil })
	_ = all.Wait() // it has no errors
	if err := live.CopyLogs(p.bootLogs(), dir); err != nil {
		e.keep("logs-missing.txt", err.Error())
	}
	slices.SortFunc(e.said, func(a, b source) int { return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.name, b.name)) })
	return likelyCause(e.said)
}

// weight orders sources, whichever node was the first to answer.
func weight(s source) int {
	if i := slices.Index([]string{sourceError, sourceKubelet, sourceContainers}, filepath.Base(s.name)); i >= 0 {
		return i
	}
	return 3
}

// everyContainer is each container of the cluster, also of one that kind did not finish.
func (p *plane) everyContainer(ctx context.Context) (names []string, err error) {
	p.mu.Lock()
	clusters := append([]string{p.cluster}, p.later...)
	p.mu.Unlock()
	for _, c := range clusters {
		text, err := docker(ctx, "ps", "--all", "--filter", "label=io.x-k8s.kind.cluster="+c, "--format", "{{.Names}}")
		if err != nil {
			return names, err
		}
		names = append(names, strings.Fields(text)...)
	}
	return names, nil
}

// ofContainer keeps what a node, or the load balancer, can tell.
func (e *evidence) ofContainer(ctx context.Context, name string) {
	e.keepOutput(ctx, filepath.Join(name, "console.log"), "sh", "-c", `docker logs --tail 200 "$0" 2>&1`, name)
	if strings.HasSuffix(name, "-external-load-balancer") {
		return
	}
	for _, part := range nodeParts {
		e.keepOutput(ctx, filepath.Join(name, part[0]), "docker", "exec", name, "sh", "-c", "{ "+part[1]+"; } 2>&1; true")
	}
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if _, err := docker(ctx, "cp", name+":"+filepath.Dir(manifest), filepath.Join(e.dir, name, "manifests")); err != nil {
		e.keep(filepath.Join(name, "manifests.txt"), "not to be had: "+err.Error())
	}
}

// ofMachine keeps what the engine did since the boot began, and how much room the machine has.
func (e *evidence) ofMachine(ctx context.Context, began time.Time) {
	e.keepOutput(ctx, "engine-ps.txt", "docker", "ps", "--all", "--no-trunc")
	// The engine numbers times by its own clock, which is this machine's.
	e.keepOutput(ctx, "engine-events.txt", "docker", "events", "--since", fmt.Sprint(began.Unix()), "--until", fmt.Sprint(time.Now().Unix()))
	e.keepOutput(ctx, "machine.txt", "sh", "-c", "cat /proc/loadavg; head -n 5 /proc/meminfo; df -h; grep . /proc/sys/fs/inotify/*")
}

// bootLogs are the folders with logs of programs under test, also of nodes that are not known yet.
func (p *plane) bootLogs() []live.LogDir {
	all := []live.LogDir{{Dir: p.layout.logs()}, {Dir: p.layout.shared()}}
	for _, name := range nodeNames(p.shape.nodes) {
		all = append(all, live.LogDir{Dir: p.layout.node(name).state(), Prefix: name + "-"})
		for _, f := range p.fleets {
			all = append(all, live.LogDir{Dir: p.layout.node(name).pod(f.Stand.APIServer).dir, Prefix: f.Stand.APIServer + "-" + name + "-"})
		}
	}
	return all
}
