package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/backend/kind/docker"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
)

// ErrNoEngine says that there is no container engine to make clusters with.
var ErrNoEngine = errors.New("no container engine answers: start one, on a bare Debian machine with: make engine")

func checkEngine(ctx context.Context) error {
	if _, err := docker.Run(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoEngine, err)
	}
	return nil
}

// container is a container of the engine by its name: a node of a cluster, or its load balancer.
type container string

// clusterLabel is the label of docker's by which kind knows the containers of a cluster, as a filter.
const clusterLabel = "label=io.x-k8s.kind.cluster="

// controlPlanes are the names that kind gives to the containers of n control-plane nodes, in order.
func controlPlanes(cluster string, n int) []container {
	all := make([]container, n)
	for i := range all {
		all[i] = container(cluster + "-control-plane")
		if i > 0 {
			all[i] += container(fmt.Sprint(i + 1))
		}
	}
	return all
}

// exec runs a command in the container and returns its output.
func (c container) exec(ctx context.Context, args ...string) (string, error) {
	return docker.Run(ctx, append([]string{"exec", "--privileged", string(c)}, args...)...)
}

// feed runs a command in the container with input.
func (c container) feed(ctx context.Context, input io.Reader, args ...string) error {
	_, err := docker.Feed(ctx, input, append([]string{"exec", "--privileged", "-i", string(c)}, args...)...)
	return err
}

// read reads a file of the container, without the white space at its end.
func (c container) read(ctx context.Context, file string) ([]byte, error) {
	text, err := c.exec(ctx, "cat", file)
	return []byte(text), err
}

// authority is one of the cluster, by the path of its files on a node without their suffix.
func (c container) authority(ctx context.Context, path string) (controlplane.Authority, error) {
	cert, err := c.read(ctx, path+".crt")
	if err != nil {
		return controlplane.Authority{}, err
	}
	key, err := c.read(ctx, path+".key")
	if err != nil {
		return controlplane.Authority{}, err
	}
	return controlplane.LoadAuthority(append(cert, '\n'), append(key, '\n'))
}

// write puts a file in place in one step; beside it the file is called next.
func (c container) write(ctx context.Context, file, next string, text []byte) error {
	return c.feed(ctx, bytes.NewReader(text), "sh", "-c", "cat > "+next+" && mv "+next+" "+file)
}

// move renames a file of the container, if it is there.
func (c container) move(ctx context.Context, from, to string) error {
	_, err := c.exec(ctx, "sh", "-c", "if [ -e "+from+" ]; then mv "+from+" "+to+"; fi")
	return err
}

// ctr runs a command of containerd's client on the containers of Kubernetes in a node.
func (c container) ctr(ctx context.Context, args ...string) (string, error) {
	return c.exec(ctx, append([]string{"ctr", "--namespace=k8s.io"}, args...)...)
}

// kubectl runs on a node, against its own API server.
func (c container) kubectl(ctx context.Context, args ...string) (string, error) {
	return c.exec(ctx, append([]string{"kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--server=https://127.0.0.1:" + portAPIServer}, args...)...)
}

// inspect asks the engine about the container, with a template.
func (c container) inspect(ctx context.Context, format string) (string, error) {
	return docker.Run(ctx, "inspect", "--format", format, string(c))
}

// address is the container's address on the nodes' network.
func (c container) address(ctx context.Context) (string, error) {
	ip, err := c.inspect(ctx, "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
	if err == nil && ip == "" {
		err = fmt.Errorf("container %s has no address", c)
	}
	return ip, err
}

// published is where the API server of the container is on this machine, host:port.
func (c container) published(ctx context.Context) (string, error) {
	at, err := docker.Run(ctx, "port", string(c), portAPIServer+"/tcp")
	first, _, _ := strings.Cut(at, "\n")
	return first, err
}

// state is the container's state in docker's words. It is not asked for with inspect: a docker exec that was about to begin when the
// container was paused holds a lock until it goes on, inspect waits for that lock with the container's own, and then nothing unpauses it.
func (c container) state(ctx context.Context) (string, error) {
	state, err := docker.Run(ctx, "ps", "--all", "--filter", "name=^/"+string(c)+"$", "--format", "{{.State}}")
	if err == nil && state == "" {
		err = fmt.Errorf("there is no container %s", c)
	}
	return state, err
}

func (c container) diedAt(ctx context.Context) (time.Time, error) {
	text, err := c.inspect(ctx, "{{.State.FinishedAt}}")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, text)
}

// lastOutput are the container's last lines of output: kind says what it could not do in a container, and not that it had ended.
func (c container) lastOutput(ctx context.Context) string {
	const timeout = 10 * time.Second // for an engine that does not answer either
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, err := docker.Logs(ctx, string(c))
	if err != nil {
		return err.Error()
	}
	return text
}

// copyOut copies a file or folder out of the container, which need not run for that.
func (c container) copyOut(ctx context.Context, from, to string) error {
	_, err := docker.Run(ctx, "cp", string(c)+":"+from, to)
	return err
}

// importArchive imports an archive of images into a node's store, with further flags.
func (c container) importArchive(ctx context.Context, file string, flags ...string) (err error) {
	archive, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return c.feed(ctx, archive, slices.Concat([]string{"ctr", "--namespace=k8s.io", "images", "import", "--digests"}, flags, []string{"-"})...)
}

// tasks are the ids of the containers of a node that the filters pick and that run. A container that has ended stays known for a while.
func (c container) tasks(ctx context.Context, filters ...string) ([]string, error) {
	known, err := c.ctr(ctx, append([]string{"containers", "list", "--quiet"}, filters...)...)
	if err != nil {
		return nil, err
	}
	tasks, err := c.ctr(ctx, "tasks", "list")
	if err != nil {
		return nil, err
	}
	return runningTasks(known, tasks), nil
}

// runningTasks are those of the containers whose task runs, of the lists that ctr prints.
func runningTasks(containers, tasks string) []string {
	known := strings.Fields(containers)
	var out []string
	for line := range strings.Lines(tasks) {
		// TASK PID STATUS
		if f := strings.Fields(line); len(f) == 3 && f[2] != "STOPPED" && slices.Contains(known, f[0]) {
			out = append(out, f[0])
		}
	}
	return out
}

// killTasks ends the containers that the filters pick all at once, past the kubelet. That each is gone is the caller's to see: one
// may end by itself, or by the kubelet when another one has ended, before its turn comes.
func (c container) killTasks(ctx context.Context, filters ...string) error {
	ids, err := c.tasks(ctx, filters...)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("no container runs with %s", strings.Join(filters, " or "))
	}
	const all = `for id in "$@"; do ctr --namespace=k8s.io tasks kill --signal SIGKILL "$id" & done; wait`
	_, err = c.exec(ctx, append([]string{"sh", "-c", all, "kill"}, ids...)...)
	return err
}

// endTimeout bounds the end of containers whose processes have all been sent SIGKILL.
const endTimeout = 2 * time.Minute

// endContainers kills containers and waits until they have ended, however long that takes: the engine's own removal by force gives
// up after 10 s, with "did not receive an exit event", and leaves the container.
func endContainers(ctx context.Context, containers ...string) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	all, ctx := errgroup.WithContext(ctx)
	for _, name := range containers {
		all.Go(func() error {
			_, killing := docker.Run(ctx, "kill", name) // also of one that has ended already
			if _, err := docker.Run(ctx, "wait", name); err != nil {
				return fmt.Errorf("end the container %s: %w", name, errors.Join(err, killing))
			}
			return nil
		})
	}
	return all.Wait()
}

// remove ends the container and removes it with its volumes.
func (c container) remove(ctx context.Context) error {
	quieten(ctx, string(c))
	if err := endContainers(ctx, string(c)); err != nil {
		return err
	}
	_, err := docker.Run(ctx, "rm", "--force", "--volumes", string(c))
	return err
}

// quiet waits, inside a node, until no container is being made there and none will be.
const quiet = `systemctl stop kubelet
for i in $(seq 50); do pgrep -x runc >/dev/null || exit 0; sleep 0.2; done`

// quieten makes nodes quiet before they are killed. On cgroup v1 runc freezes a container's cgroup for a moment while it makes the
// container. If runc is killed in that moment, with its node, the cgroup stays frozen, and what is frozen cannot die: the node
// would never end. What cannot be asked (it is paused, or no node) is killed all the same.
func quieten(ctx context.Context, containers ...string) {
	var all sync.WaitGroup
	for _, name := range containers {
		all.Go(func() { _, _ = container(name).exec(ctx, "sh", "-c", quiet) })
	}
	all.Wait()
}

// starting keeps apart what the engine cannot have at the same time: a docker exec that begins, and a pause of its container. An exec that
// is frozen before it has begun keeps the engine waiting, with locks held, and nothing unpauses the container any more. The zero value
// is ready.
type starting struct{ mu sync.RWMutex }

// exec is called before an exec; begun, once it has begun, or has ended. Begun may be called again.
func (s *starting) exec() (begun func()) {
	s.mu.RLock()
	return sync.OnceFunc(s.mu.RUnlock)
}

// pause runs f while no exec begins.
func (s *starting) pause(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f()
}

// namePrefix begins the names of all clusters of the harness.
const namePrefix = "kmsharness-"

// network is the one that kind makes for all clusters of a machine, and never deletes.
const network = "kind"

// Watch notes whether kind's network is there before a run. The function that it returns deletes, after the run, the network if it was
// not, and the clusters of harnesses that were killed: making a cluster cannot be interrupted, so a harness that is asked to end meanwhile
// may have to be killed before it could delete the cluster itself.
func Watch(ctx context.Context) (sweep func(ctx context.Context, progress func(string)) error) {
	_, missing := docker.Run(ctx, "network", "inspect", network)
	return func(ctx context.Context, progress func(string)) error {
		if checkEngine(ctx) != nil {
			return nil // nothing was made
		}
		dir, err := process.NewRunDir(ctx)
		if err == nil {
			provider := cluster.NewProvider(cluster.ProviderWithDocker())
			err = errors.Join(removeStale(ctx, provider, filepath.Join(dir.Path, "kubeconfig"), progress), dir.Close())
		}
		if missing == nil {
			return err
		}
		return errors.Join(err, removeNetwork(ctx))
	}
}

// removeNetwork leaves a network that somebody else has begun to use.
func removeNetwork(ctx context.Context) error {
	used, err := docker.Run(ctx, "network", "inspect", "--format", "{{len .Containers}}", network)
	if err != nil || used != "0" {
		return nil // it is not there
	}
	_, err = docker.Run(ctx, "network", "rm", network)
	return err
}

// deleteCluster ends the nodes of a cluster before kind deletes it.
func deleteCluster(ctx context.Context, provider *cluster.Provider, name, kubeconfig string) error {
	text, err := docker.Run(ctx, "ps", "--quiet", "--filter", clusterLabel+name)
	ids := strings.Fields(text)
	if err == nil {
		quieten(ctx, ids...)
		err = endContainers(ctx, ids...)
	}
	if deleting := provider.Delete(name, kubeconfig); deleting != nil {
		return fmt.Errorf("delete the kind cluster %s: %w", name, errors.Join(deleting, err))
	}
	return nil
}

// removeStale deletes the clusters of harnesses that were killed. Such a cluster mounts folders that are gone: the next harness removes the run
// directories of the dead first (process.NewRunDir).
func removeStale(ctx context.Context, provider *cluster.Provider, kubeconfig string, progress func(string)) error {
	names, err := provider.List()
	if err != nil {
		return fmt.Errorf("look for clusters of earlier runs: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, namePrefix) {
			continue
		}
		// A cluster that cannot be asked is left: somebody may just be making or deleting it.
		mounts, err := controlPlanes(name, 1)[0].inspect(ctx, "{{range .Mounts}}{{.Source}}\n{{end}}")
		if err != nil || !gone(strings.Fields(mounts)) {
			continue
		}
		progress("deleting the kind cluster " + name + ", which an earlier run left behind")
		if err := deleteCluster(ctx, provider, name, kubeconfig); err != nil {
			return fmt.Errorf("delete the kind cluster %s of an earlier run: %w", name, err)
		}
	}
	return nil
}

// gone reports whether the state folder among the sources of mounts does not exist any more.
func gone(sources []string) bool {
	for _, s := range sources {
		if strings.HasSuffix(s, "/state") {
			_, err := os.Stat(s)
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
}
