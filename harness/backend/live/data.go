package live

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Where the data of scenarios are, and how to find them.
const (
	dataNamespace = "default"
	dataLabel     = "kmsharness.io/data"
	dataField     = "value"
)

func secret(name string, value []byte) *unstructured.Unstructured {
	u := newObject("v1", "Secret", name, object{"data": object{dataField: base64.StdEncoding.EncodeToString(value)}})
	u.SetLabels(map[string]string{dataLabel: "true"})
	return u
}

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// dataWriters is how many objects are written or read at once.
const dataWriters = 8

// data writes secrets through every API server in turn, reads all that were written back through each of them, or writes every
// secret of the cluster anew.
func (e *Environment) data(ctx context.Context, a *scenario.Data) error {
	count, size := a.Objects()
	switch op := a.Op; {
	case count < 1 || count > scenario.MaxObjects || size < 1 || size > scenario.MaxObjectBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, scenario.MaxObjects, size, scenario.MaxObjectBytes)
	case op == scenario.DataWrite:
		return e.writeData(ctx, count, size)
	case op == scenario.DataVerify:
		return e.verifyData(ctx)
	case op == scenario.DataMigrate:
		return e.migrateData(ctx)
	default:
		return fmt.Errorf("data: op %q: expected write, verify or migrate", op)
	}
}

func (e *Environment) writeData(ctx context.Context, count, size int) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return fmt.Errorf("data: no API server runs")
	}
	if err := e.awaitReload(ctx, nodes); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dataWriters)
	for i := range count {
		group.Go(func() error { return e.writeNew(ctx, nodes[i%len(nodes)], size) })
	}
	return group.Wait()
}

// writeNew writes a secret that nobody knows.
func (e *Environment) writeNew(ctx context.Context, n *Node, size int) error {
	value := make([]byte, size)
	if _, err := rand.Read(value); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	e.mu.Lock()
	e.serial++
	name := fmt.Sprintf("data-%d", e.serial)
	e.mu.Unlock()
	return e.writeOne(ctx, n, name, value)
}

// writeOne creates a secret, or replaces the one that was written before. A write that is refused is an event, not an error:
// whether it should have been is the checker's and the scenario's business.
func (e *Environment) writeOne(ctx context.Context, n *Node, name string, value []byte) error {
	e.mu.Lock()
	_, there := e.written[name]
	e.mu.Unlock()
	object := e.objects.objectName(name)
	e.recorder.secrecy.Add(object, secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: object, Digest: digest(value), Node: n.Name, Want: e.wantNow()}
	err := n.Admin.put(ctx, e.objects.Resource, e.objects.object(name, value), there)
	if d.Want != e.wantNow() {
		d.Want = "" // it changed meanwhile
	}
	e.recordData(d, err)
	if err != nil {
		return ctx.Err()
	}
	e.mu.Lock()
	e.written[name] = d
	e.mu.Unlock()
	return e.inspect(ctx, name, d)
}

func (c *Client) put(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured, there bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	objects := c.Resource(r).Namespace(dataNamespace)
	if there {
		_, err = objects.Update(ctx, o, metav1.UpdateOptions{})
		return err
	}
	_, err = objects.Create(ctx, o, metav1.CreateOptions{})
	return err
}

// wantNow is the provider that encrypts what is written now; empty while not every API server has been told, or has loaded, so.
func (e *Environment) wantNow() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pods != nil {
		return e.pods.writer()
	}
	if len(e.reloads) > 0 || e.telling {
		return ""
	}
	return e.told.Providers.Writer().Name()
}

// inspect looks at a secret in etcd, past every API server.
func (e *Environment) inspect(ctx context.Context, name string, written history.Data) error {
	d := history.Data{Op: history.DataRaw, Object: written.Object, Want: written.Want}
	stored, err := e.stored(ctx, e.objects.Registry+dataNamespace+"/"+name)
	e.recorder.secrecy.Add(written.Object, secrecy.Sealed, stored.data)
	e.recorder.secrecy.Add(written.Object, secrecy.Sealed, stored.dekSource)
	d.Provider, d.KEKID, d.DEKSource = stored.provider, stored.kekID, journal.Digest(stored.dekSource)
	if e.wantNow() != d.Want {
		return ctx.Err() // it may have been written anew meanwhile: the census looks at it
	}
	e.recordData(d, err)
	return ctx.Err()
}

// verifyData reads everything that was written through every API server that runs.
func (e *Environment) verifyData(ctx context.Context) error {
	e.mu.Lock()
	names := slices.Sorted(maps.Keys(e.written))
	busy := e.busy
	e.mu.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool { return name == busy })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dataWriters)
	for _, n := range e.serving() {
		for _, name := range names {
			group.Go(func() error { return e.readOne(ctx, n, name) })
		}
	}
	return group.Wait()
}

func (e *Environment) readOne(ctx context.Context, n *Node, name string) error {
	e.mu.Lock()
	written := e.written[name]
	e.mu.Unlock()
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.Name}
	got, err := n.direct().Resource(e.objects.Resource).Namespace(dataNamespace).Get(reading, name, metav1.GetOptions{})
	if err == nil {
		var value []byte
		if value, err = e.objects.value(got); err == nil {
			d.Digest = digest(value)
		}
	}
	e.recordData(d, err) // what it should be the checker knows: a write that failed may have been made
	return ctx.Err()
}

// migrateData is a storage migration without a switch: after a rotation nothing is left under the old KEK.
func (e *Environment) migrateData(ctx context.Context) error {
	e.topology.Lock()
	defer e.topology.Unlock()
	if err := e.migrate(ctx); err != nil {
		return err
	}
	return e.census(ctx)
}

func (e *Environment) recordData(d history.Data, err error) {
	d.OK = err == nil
	if err != nil {
		d.Error = err.Error()
	}
	e.record(&d)
}
