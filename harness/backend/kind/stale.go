package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kind/pkg/cluster"

	"github.com/kmsharness/kmsharness/harness/process"
)

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
