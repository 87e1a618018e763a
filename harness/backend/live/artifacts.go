package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/aggregator/core"
	"github.com/kmsharness/kmsharness/harness/backend"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/operator/revision"
)

var _ backend.Collector = (*Environment)(nil)

// artifactPatience is how long one API server may take to hand out the objects before the next is asked.
const artifactPatience = 3 * time.Second

// wantedObjects is a list of objects, or the one of a name, for the artifacts.
type wantedObjects struct {
	resource schema.GroupVersionResource
	name     string
}

// artifactObjects are what a person wants to see of a cluster. Secrets are none of it.
func (e *apiServer) artifactObjects() []wantedObjects {
	all := []wantedObjects{
		{e.operator.Resource, core.OperatorObject}, {cluster.ClusterOperators(), e.operator.ClusterOperator}, {revision.Configurations(), core.OperatorObject},
		{cluster.NodeObjects(), ""}, {cluster.LeaseObjects(), ""},
	}
	if e.traits.RealNodes {
		all = append(all, wantedObjects{cluster.PodObjects(), ""}, wantedObjects{cluster.EventObjects(), ""})
	}
	return all
}

// Snapshot implements backend.Collector. Any API server will do: all show the same objects, if they answer.
func (e *Environment) Snapshot(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("artifacts: %w", err)
	}
	return errors.Join(e.kube().snapshotObjects(ctx, dir), e.kube().snapshotEncryption(dir))
}

func (e *apiServer) snapshotObjects(ctx context.Context, dir string) error {
	errs := []error{errors.New("no API server gave the objects")}
	for _, n := range e.serving() {
		err := snapshotThrough(ctx, n.Admin, e.artifactObjects(), dir)
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
	}
	return errors.Join(errs...)
}

// snapshotThrough writes what one API server shows: a file for each resource. An object that is not there is an error like
// any other: these always exist.
func snapshotThrough(ctx context.Context, c *cluster.Client, wanted []wantedObjects, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, artifactPatience)
	defer cancel()
	var errs []error
	for _, w := range wanted {
		if err := snapshotOne(ctx, c, w, dir); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", w.resource.GroupResource(), w.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

func snapshotOne(ctx context.Context, c *cluster.Client, w wantedObjects, dir string) error {
	var content any
	if w.name != "" {
		o, err := c.Resource(w.resource).Get(ctx, w.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		content = o.Object
	} else {
		list, err := c.Resource(w.resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		content = list.UnstructuredContent()
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, w.resource.GroupResource().String()+".yaml"), text, 0o644)
}

// snapshotEncryption copies the encryption configuration of every API server, without keys.
func (e *apiServer) snapshotEncryption(dir string) error {
	var errs []error
	for _, n := range e.nodes() {
		text, err := os.ReadFile(n.EncryptionFile)
		if err == nil {
			text, err = cluster.WithoutSecrets(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "encryption-"+n.Name+".yaml"), text, 0o644)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("encryption configuration of %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (e *Environment) Collect(ctx context.Context, dir string, progress func(string)) error {
	return errors.Join(e.Snapshot(ctx, filepath.Join(dir, "at-end")), e.controlPlane.Recording.Collect(ctx, dir, progress))
}
