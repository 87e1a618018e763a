package kind

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
func explain(ctx context.Context, p *controlPlane, failed error, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	e := &evidence{dir: dir}
	e.keep(sourceError, strings.TrimSpace(failed.Error()+"\n"+p.kindSaid))
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
	if err := container(name).copyOut(ctx, filepath.Dir(manifest), filepath.Join(e.dir, name, "manifests")); err != nil {
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

// source is a text in which the cause of a boot that failed may be found, such as a kubelet's journal.
type source struct{ name, text string }

// Names of sources; those of a node have its container's name before them.
const (
	sourceError      = "error"
	sourceKubelet    = "kubelet.log"
	sourceContainers = "containers.log"
)

// symptoms of causes, the most certain first. A healthy boot has lines like those of the last ones, too: a cluster that came up
// is not searched.
var symptoms = []struct {
	pattern *regexp.Regexp
	cause   string
}{
	{regexp.MustCompile(`too many open files|inotify watch(es)? limit|inotify\w* .*no space left on device`), "an inotify limit is reached: raise fs.inotify.max_user_instances and fs.inotify.max_user_watches"},
	{regexp.MustCompile(`no space left on device`), "the disk is full"},
	{regexp.MustCompile(`OOMKilled|oom-kill|container oom |Memory cgroup out of memory|Out of memory: Killed`), "the machine has too little memory"},
	{regexp.MustCompile(`port is already allocated|address already in use`), "a port is taken"},
	{regexp.MustCompile(`ErrImagePull|ErrImageNeverPull|[Ff]ailed to pull (and unpack )?image|Unable to find image|No such image|pull access denied|manifest unknown`), "an image is missing"},
	{regexp.MustCompile(`[Ff]ailed to start ContainerManager|[Ff]ailed to (create|apply|initialize) (the )?cgroup|cgroup mountpoint does not exist`), "cgroups do not work"},
	{crashLoop, "a container ends again and again"},
	{regexp.MustCompile(`"command failed" err=`), "the kubelet ends"},
	{regexp.MustCompile(`[Tt]he kubelet (is not running|isn't running or healthy|is not healthy)`), "the kubelet does not run"},
	{regexp.MustCompile(`failed to publish local member to cluster|etcdserver: request timed out`), "etcd was too slow"},
	{regexp.MustCompile(`sources aren't ready`), "a kubelet has had no answer from an API server, and deletes no pod"},
}

// crashLoop has the container's name and its pod's.
var crashLoop = regexp.MustCompile(`back-off \S+ restarting failed container=(\S+) pod=([^_\s]+)`)

// kubeletError begins a line of a kubelet that is an error.
var kubeletError = regexp.MustCompile(`\bE\d{4} \d\d:\d\d:\d\d`)

// likelyCause names in one line the likely cause of a boot that failed, with the line that it follows from. Sources come in the order of
// their weight.
func likelyCause(said []source) string {
	for _, s := range symptoms {
		for _, from := range said {
			line := lastMatch(from.text, s.pattern)
			if line == "" {
				continue
			}
			if s.pattern == crashLoop {
				return ofContainer(said, crashLoop.FindStringSubmatch(line))
			}
			return fmt.Sprintf("%s (%s: %s)", s.cause, from.name, clipLine(before(line, s.pattern)))
		}
	}
	for _, from := range said {
		if line := lastMatch(from.text, kubeletError); line != "" && strings.HasSuffix(from.name, sourceKubelet) {
			return fmt.Sprintf("unknown; the last error of a kubelet is %s: %s", from.name, clipLine(line))
		}
	}
	if len(said) > 0 {
		first, _, _ := strings.Cut(said[0].text, "\n")
		return clipLine(first)
	}
	return "unknown"
}

// ofContainer is the cause when a container ends again and again: the last line that it wrote.
func ofContainer(said []source, found []string) string {
	container, pod := found[1], found[2]
	cause := fmt.Sprintf("the container %s of %s ends again and again", container, pod)
	for _, from := range said {
		if !strings.HasSuffix(from.name, sourceContainers) {
			continue
		}
		if line := lastOf(from.text, pod, container); line != "" {
			return fmt.Sprintf("%s; its last line: %s", cause, clipLine(line))
		}
	}
	return cause
}

// sectionHead begins the log of a container in containers.log, before the name of its file.
const sectionHead = "==> "

// lastOf is the last line that a container wrote; its file is …/NAMESPACE_POD_UID/CONTAINER/N.log.
func lastOf(text, pod, container string) (last string) {
	within := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, sectionHead):
			within = strings.Contains(line, "_"+pod+"_") && strings.Contains(line, "/"+container+"/")
		case within && strings.TrimSpace(line) != "":
			last = line
		}
	}
	return last
}

// lastMatch is the last line that a pattern matches; empty if there is none.
func lastMatch(text string, pattern *regexp.Regexp) string {
	lines := strings.Split(text, "\n")
	for _, line := range slices.Backward(lines) {
		if pattern.MatchString(line) {
			return line
		}
	}
	return ""
}

// before leaves out what stands far before a match: a journal's lines begin with names and times.
func before(line string, pattern *regexp.Regexp) string {
	const enough = 100
	at := pattern.FindStringIndex(line)[0]
	if at <= enough {
		return line
	}
	return "… " + strings.ToValidUTF8(line[at-enough:], "")
}

// clipLine keeps of a line what fits into a summary.
func clipLine(line string) string {
	const most = 300
	line = strings.Join(strings.Fields(line), " ")
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + " …"
	}
	return line
}
