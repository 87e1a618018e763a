package kind

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kmsharness/kmsharness/harness/backend/operand"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record"
	events "github.com/kmsharness/kmsharness/harness/record/container"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

const (
	// watchAgain is how long after its end a stream of events is asked for again: a node that was off comes back.
	watchAgain = 500 * time.Millisecond
	// endOfWatch is how long a command may take to end once nobody listens.
	endOfWatch = 2 * time.Second
	// maxEventLine bounds one event; the longest have a container's mounts.
	maxEventLine = 1 << 20
)

// watchContainers records what becomes of the container of a node and of those in it, until ctx ends. No API server is
// asked: when there is none is when it matters.
func watchContainers(ctx context.Context, c container, node string, sink record.Sink, execs *starting) {
	var both sync.WaitGroup
	both.Go(func() { watchEngine(ctx, string(c), node, sink) })
	both.Go(func() { watchInside(ctx, c, node, sink, execs) })
	both.Wait()
}

// watchEngine records what becomes of the container that is a node.
func watchEngine(ctx context.Context, name, node string, sink record.Sink) {
	r, since := &events.Recorder{Sink: sink, Node: node, Name: name, Source: "engine/" + node}, time.Now()
	args := []string{"events", "--format", "{{json .}}", "--filter", "type=container", "--filter", "container=" + name}
	for _, e := range []string{"start", "die", "kill", "pause", "unpause", "oom"} {
		args = append(args, "--filter", "event="+e)
	}
	watchAll(ctx, sink, r.Node, r.Source, func() error {
		from := fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond())
		defer func() { since = time.Now() }()
		return stream(ctx, r.Engine, append(args, "--since", from)...)
	})
}

// watchBegun is what a watch says first, so that it is known to run.
const watchBegun = "begun"

// watchInside records what becomes of the containers in a node.
func watchInside(ctx context.Context, in container, node string, sink record.Sink, execs *starting) {
	r := &events.Recorder{Sink: sink, Node: node, Source: "containerd/" + node, Wanted: watched}
	r.Inspect = func(id string) (events.Identity, bool, error) {
		defer execs.exec()()
		text, err := in.ctr(ctx, "containers", "info", id)
		if err != nil {
			return events.Identity{}, false, err
		}
		return events.Info([]byte(text))
	}
	watchAll(ctx, sink, r.Node, r.Source, func() error {
		begun := execs.exec()
		defer begun()
		links, err := in.exec(ctx, "find", "/var/log/containers", "-type", "l", "-printf", `%f %l\n`)
		if err != nil {
			return err
		}
		r.Known = events.Links(links)
		// A command in a container outlives its client. This one ends when nobody holds its input any more.
		use := func(line []byte) error {
			if string(line) == watchBegun {
				begun()
				return nil
			}
			return r.Containerd(line)
		}
		return stream(ctx, use, "exec", "-i", "--privileged", string(in), "sh", "-c", "echo "+watchBegun+"; ctr --namespace=k8s.io events & cat >/dev/null; kill $!")
	})
}

// watched are the containers of the API servers' pods, with the plugins and reporters, of etcd, and of the aggregators.
func watched(i events.Identity) bool {
	static := (i.Namespace == metav1.NamespaceSystem || i.Namespace == operand.Namespace) && (strings.HasPrefix(i.Pod, "kube-apiserver-") || strings.HasPrefix(i.Pod, "etcd-"))
	return static || i.Namespace == aggregators || ofAggregated(i.Namespace)
}

// watchAll watches again whenever a stream ends, until ctx does. That it had ended is in the history, once for each time
// that something was seen before.
func watchAll(ctx context.Context, sink record.Sink, node, source string, watch func() error) {
	ticker := time.NewTicker(watchAgain)
	defer ticker.Stop()
	told := ""
	for {
		err := watch()
		if ctx.Err() != nil {
			return
		}
		if why := fmt.Sprint(err); why != told {
			told = why
			sink.Record(time.Now(), source, &history.Container{Node: node, Name: source, State: history.ContainerUnseen, Detail: why})
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// stream runs a docker command and gives each of its lines to use. It ends with the command, or with ctx: then the command's
// input is closed, and only if that does not end it, it is killed.
func stream(ctx context.Context, use func([]byte) error, args ...string) error {
	cmd := exec.CommandContext(ctx, "docker", args...)
	input, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.WaitDelay = endOfWatch
	if args[0] == "exec" { // docker events reads nothing
		cmd.Cancel = input.Close
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, maxEventLine)
	var bad error
	for lines.Scan() {
		if err := use(lines.Bytes()); bad == nil {
			bad = err
		}
	}
	_ = input.Close()
	if err := errors.Join(cmd.Wait(), lines.Err(), bad); err != nil {
		return fmt.Errorf("docker %s: %w: %.300s", args[0], err, strings.Join(strings.Fields(said.String()), " "))
	}
	return fmt.Errorf("docker %s: it has ended", args[0])
}

// ofAggregated says whether a namespace is that of a further API server.
func ofAggregated(namespace string) bool {
	return slices.ContainsFunc(scenario.APIServers(), func(name string) bool {
		s, err := cluster.StubOf(name)
		return err == nil && s.Namespace == namespace
	})
}
