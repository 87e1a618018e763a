package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kmsharness/kmsharness/harness/backend"
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
		{e.operator.resource, cluster}, {clusterOperators(), e.operator.ClusterOperator}, {revision.Configurations(), cluster},
		{nodeObjects(), ""}, {leaseObjects(), ""},
	}
	if e.traits.RealNodes {
		all = append(all, wantedObjects{podObjects(), ""}, wantedObjects{eventObjects(), ""})
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
func snapshotThrough(ctx context.Context, c *Client, wanted []wantedObjects, dir string) error {
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

func snapshotOne(ctx context.Context, c *Client, w wantedObjects, dir string) error {
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
			text, err = WithoutSecrets(text)
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

// LogDir is a folder with logs of a plane; Prefix goes before the names of their copies.
type LogDir struct{ Dir, Prefix string }

// logCopy copies what was appended to the logs of a plane since it was made: a plane outlives a scenario, the logs
// of a scenario are its own.
type logCopy struct {
	from  []LogDir
	to    string
	sizes map[string]int64 // by path
}

// isLog tells logs and journals from what else lies beside them, sockets and credentials among it.
func isLog(entry os.DirEntry) bool {
	ext := filepath.Ext(entry.Name())
	return entry.Type().IsRegular() && (ext == ".log" || ext == ".jsonl")
}

func markLogs(from []LogDir, to string) (*logCopy, error) {
	c := &logCopy{from: from, to: to, sizes: map[string]int64{}}
	err := c.each(func(_ LogDir, path string, entry os.DirEntry) error {
		info, err := entry.Info()
		if err == nil {
			c.sizes[path] = info.Size()
		}
		return err
	})
	return c, err
}

func (c *logCopy) each(do func(from LogDir, path string, entry os.DirEntry) error) error {
	var errs []error
	for _, from := range c.from {
		entries, err := os.ReadDir(from.Dir)
		errs = append(errs, err)
		for _, entry := range entries {
			if isLog(entry) {
				errs = append(errs, do(from, filepath.Join(from.Dir, entry.Name()), entry))
			}
		}
	}
	return errors.Join(errs...)
}

func (c *logCopy) copy() error {
	return c.each(func(from LogDir, path string, entry os.DirEntry) error {
		if err := c.copyOne(path, filepath.Join(c.to, from.Prefix+entry.Name())); err != nil {
			return fmt.Errorf("copy log %s: %w", entry.Name(), err)
		}
		return nil
	})
}

func (c *logCopy) copyOne(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if _, err := source.Seek(c.sizes[from], io.SeekStart); err != nil {
		return err
	}
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}

// CopyLogs copies the logs of folders as they are now; those that are missing are in its error.
func CopyLogs(from []LogDir, to string) error {
	return (&logCopy{from: from, to: to}).copy()
}
