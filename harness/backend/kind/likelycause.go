package kind

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
