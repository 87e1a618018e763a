package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/process"
)

// docker runs a docker command and gives what it prints. An error has docker's own words, on one line.
func docker(ctx context.Context, args ...string) (string, error) {
	return run(ctx, nil, "docker", args...)
}

// inside runs a command in a node's container, with input if it is not nil.
func inside(ctx context.Context, container string, input io.Reader, args ...string) (string, error) {
	words := []string{"exec", "--privileged"}
	if input != nil {
		words = append(words, "-i")
	}
	return run(ctx, input, "docker", append(append(words, container), args...)...)
}

func run(ctx context.Context, input io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &errs
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(out.String()), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(short(args), " "), err, end(errs.String()))
}

// end is the last of what a command said, on one line: kubeadm says what is wrong last.
func end(text string) string {
	const most = 600
	words := strings.Join(strings.Fields(text), " ")
	if len(words) > most {
		return "… " + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	return words
}

// short leaves out of a command line what nobody wants to read in an error.
func short(args []string) []string {
	const most = 8
	if len(args) > most {
		return append(append([]string(nil), args[:most]...), "…")
	}
	return args
}

// ErrNoEngine says that there is no container engine to make clusters with.
var ErrNoEngine = errors.New("no container engine answers: start one, on a bare Debian machine with: make engine")

// checkEngine says whether an engine answers.
func checkEngine(ctx context.Context) error {
	if _, err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoEngine, err)
	}
	return nil
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
			_, killing := docker(ctx, "kill", name) // also of one that has ended already
			if _, err := docker(ctx, "wait", name); err != nil {
				return fmt.Errorf("end the container %s: %w", name, errors.Join(err, killing))
			}
			return nil
		})
	}
	return all.Wait()
}

// removeContainer ends a container and removes it with its volumes.
func removeContainer(ctx context.Context, name string) error {
	quieten(ctx, name)
	if err := endContainers(ctx, name); err != nil {
		return err
	}
	_, err := docker(ctx, "rm", "--force", "--volumes", name)
	return err
}

// quiet waits, inside a node, until no container is being made there and none will be.
const quiet = `systemctl stop kubelet
for i in $(seq 50); do pgrep -x runc >/dev/null || exit 0; sleep 0.2; done`

// quieten makes nodes quiet before they are killed. On cgroup v1 runc freezes a container's cgroup for a moment while it makes the
// container. If runc is killed in that moment, with its node, the cgroup stays frozen, and what is frozen cannot die: the node
// would never end. What cannot be asked (it is paused, or no node) is killed all the same.
func quieten(ctx context.Context, containers ...string) {
	var all errgroup.Group
	for _, name := range containers {
		all.Go(func() error {
			_, _ = inside(ctx, name, nil, "sh", "-c", quiet)
			return nil
		})
	}
	_ = all.Wait() // it has no errors
}

// deleteCluster ends the nodes of a cluster before kind deletes it.
func deleteCluster(ctx context.Context, provider *cluster.Provider, name, kubeconfig string) error {
	text, err := docker(ctx, "ps", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+name)
	if ids := strings.Fields(text); err == nil {
		quieten(ctx, ids...)
		err = endContainers(ctx, ids...)
	}
	if deleting := provider.Delete(name, kubeconfig); deleting != nil {
		return fmt.Errorf("delete the kind cluster %s: %w", name, errors.Join(deleting, err))
	}
	return nil
}

// namePrefix begins the names of all clusters of the harness.
const namePrefix = "kmsharness-"

// network is the one that kind makes for all clusters of a machine, and never deletes.
const network = "kind"

// Watch notes whether kind's network is there before a run, and gives what deletes, after it, the network if it was not, and the
// clusters of harnesses that were killed: making a cluster cannot be interrupted, so a harness that is told to end meanwhile
// may have to be killed before it could delete the cluster itself.
func Watch(ctx context.Context) (sweep func(ctx context.Context, progress func(string)) error) {
	_, err := docker(ctx, "network", "inspect", network)
	return func(ctx context.Context, progress func(string)) error {
		if checkEngine(ctx) != nil {
			return nil // nothing was made
		}
		swept := sweepClusters(ctx, progress)
		if err == nil {
			return swept
		}
		return errors.Join(swept, removeNetwork(ctx))
	}
}

// removeNetwork leaves a network that somebody else has begun to use.
func removeNetwork(ctx context.Context) error {
	used, err := docker(ctx, "network", "inspect", "--format", "{{len .Containers}}", network)
	if err != nil || used != "0" {
		return nil // it is not there
	}
	_, err = docker(ctx, "network", "rm", network)
	return err
}

func sweepClusters(ctx context.Context, progress func(string)) error {
	dir, err := process.NewRunDir(ctx)
	if err != nil {
		return err
	}
	provider := cluster.NewProvider(cluster.ProviderWithDocker())
	return errors.Join(removeStale(ctx, provider, filepath.Join(dir.Path, "kubeconfig"), progress), dir.Close())
}

// removeStale deletes the clusters of harnesses that were killed. Such a cluster mounts folders that are gone: whoever starts
// next removes the run directories of the dead first (process.NewRunDir).
func removeStale(ctx context.Context, provider *cluster.Provider, kubeconfig string, progress func(string)) error {
	names, err := provider.List()
	if err != nil {
		return fmt.Errorf("look for clusters of earlier runs: %w", err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, namePrefix) || !stale(ctx, name) {
			continue
		}
		progress("deleting the kind cluster " + name + ", which an earlier run left behind")
		if err := deleteCluster(ctx, provider, name, kubeconfig); err != nil {
			return fmt.Errorf("delete the kind cluster %s of an earlier run: %w", name, err)
		}
	}
	return nil
}

// stale says whether the folders are gone that the first node of a cluster mounts. Of one that cannot be asked it is not
// said: somebody may just be making or deleting it.
func stale(ctx context.Context, name string) bool {
	sources, err := docker(ctx, "inspect", "--format", "{{range .Mounts}}{{.Source}}\n{{end}}", containersOf(name, 1)[0])
	if err != nil {
		return false
	}
	return gone(strings.Fields(sources))
}

// gone says whether the state folder among the sources of mounts does not exist any more.
func gone(sources []string) bool {
	for _, s := range sources {
		if strings.HasSuffix(s, "/state") {
			_, err := os.Stat(s)
			return errors.Is(err, fs.ErrNotExist)
		}
	}
	return false
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
