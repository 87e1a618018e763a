package live

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/cluster/atrest"
	"github.com/kmsharness/kmsharness/harness/cluster/objects"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

func digest(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// dataWriters is how many objects are written or read at once.
const dataWriters = 8

// dataset has the objects that are encrypted: it writes, reads, migrates and counts them. Values are random, so that a
// value that appears in a log can only come from there.
type dataset struct {
	e       *apiServer
	largest atomic.Bool // was written

	mu      sync.Mutex
	random  *mathrand.ChaCha8
	written map[string]history.Data // secrets by name
	serial  int
	loaded  int    // objects that loads wanted to make
	busy    string // the secret that is being written again and again: nobody can say what a read of it should give
}

func newDataset(e *apiServer) *dataset {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // it never fails
	return &dataset{e: e, random: mathrand.NewChaCha8(seed), written: map[string]history.Data{}}
}

func (ds *dataset) wrote() bool {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return len(ds.written) > 0
}

// data writes secrets through every API server in turn, reads all that were written back through each of them, or writes every
// secret of the cluster anew.
func (ds *dataset) data(ctx context.Context, a *scenario.Data) error {
	count, size := a.Objects()
	ctx = cluster.WithAuditID(ctx, a.AuditID)
	switch op := a.Op; {
	case count < 1 || count > scenario.MaxObjects || size < 1 || size > scenario.MaxObjectBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, scenario.MaxObjects, size, scenario.MaxObjectBytes)
	case op == scenario.DataWrite:
		return ds.writeData(ctx, count, size)
	case op == scenario.DataVerify:
		return ds.verifyData(ctx)
	case op == scenario.DataMigrate:
		return ds.migrateData(ctx)
	case op == scenario.DataUnreadable:
		_, err := ds.e.recovery.unreadable(ctx, count)
		return err
	case op == scenario.DataDiscard:
		return ds.e.recovery.discard(ctx, count)
	case op == scenario.DataSnapshot:
		return ds.e.recovery.snapshot(ctx)
	case op == scenario.DataRestore:
		return ds.e.recovery.restore(ctx)
	default:
		return fmt.Errorf("data: op %q: expected write, verify, migrate, unreadable, discard, snapshot or restore", op)
	}
}

// writeData writes new objects of a size, through all API servers in turn. It first waits until each has loaded its configuration: otherwise nobody knows
// by which key an object must be stored. Names and values are drawn before, in order, so that a seed decides them.
func (ds *dataset) writeData(ctx context.Context, count, size int) error {
	nodes := ds.e.serving()
	if len(nodes) == 0 {
		return fmt.Errorf("data: no API server runs")
	}
	if err := ds.e.encrypting.awaitReload(ctx, nodes); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dataWriters)
	for i := range count {
		name, value := ds.draw(size)
		group.Go(func() error { return ds.writeOne(ctx, nodes[i%len(nodes)], name, value) })
	}
	return group.Wait()
}

func (ds *dataset) writeNew(ctx context.Context, n *cluster.Node, size int) error {
	name, value := ds.draw(size)
	return ds.writeOne(ctx, n, name, value)
}

// draw returns a new secret with a random value. The order of draws is that of the calls, and not that of the goroutines
// that write: in virtual time those of one instant run in any order.
func (ds *dataset) draw(size int) (name string, value []byte) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	value = make([]byte, size)
	_, _ = ds.random.Read(value) // it never fails
	ds.serial++
	return fmt.Sprintf("data-%d", ds.serial), value
}

// kinds are the objects that are encrypted. An operator under test encrypts ConfigMaps, too.
func (ds *dataset) kinds() []cluster.Encrypted {
	if ds.e.pods.underTest() {
		return []cluster.Encrypted{ds.e.Encrypted, cluster.EncryptedConfigMaps()}
	}
	return []cluster.Encrypted{ds.e.Encrypted}
}

// of is what an object of a scenario is: one of the kinds, by its name.
func (ds *dataset) of(name string) cluster.Encrypted {
	kinds := ds.kinds()
	return kinds[crc32.ChecksumIEEE([]byte(name))%uint32(len(kinds))]
}

// writeOne creates a secret, or replaces the one that was written before. A write that is refused is an event, not an
// error: whether the API server should have accepted it is for the checker and the scenario to decide.
func (ds *dataset) writeOne(ctx context.Context, n *cluster.Node, name string, value []byte) error {
	ds.mu.Lock()
	_, there := ds.written[name]
	ds.mu.Unlock()
	of := ds.of(name)
	object := of.ObjectName(name)
	ds.e.recorder.Secrecy.Add(object, secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: object, Digest: digest(value), Node: n.Name, Want: ds.wantNow()}
	err := objects.Put(ctx, n.Admin, of.Resource, of.Object(name, value), there)
	if d.Want != ds.wantNow() {
		d.Want = "" // it changed meanwhile
	}
	ds.recordData(d, err)
	if err != nil {
		return ctx.Err()
	}
	ds.mu.Lock()
	ds.written[name] = d
	ds.mu.Unlock()
	return ds.inspect(ctx, name, d)
}

// wantNow returns the provider that encrypts what is written now; empty while some API server was not given, or has not
// loaded, the newest configuration. Writes of that time are not judged by their provider.
func (ds *dataset) wantNow() string {
	ds.e.mu.Lock()
	defer ds.e.mu.Unlock()
	if ds.e.pods != nil {
		return ds.e.pods.writer()
	}
	if len(ds.e.reloads) > 0 || ds.e.telling {
		return ""
	}
	return ds.e.configured.Providers.Writer().Name()
}

// inspect reads a secret from etcd, past every API server: only there can be seen whether, and by which key, it is
// encrypted.
func (ds *dataset) inspect(ctx context.Context, name string, written history.Data) error {
	d := history.Data{Op: history.DataRaw, Object: written.Object, Want: written.Want}
	stored, err := atrest.Read(ctx, ds.e.controlPlane.Storage, ds.of(name).Registry+cluster.DataNamespace+"/"+name)
	ds.e.recorder.Secrecy.Add(written.Object, secrecy.Sealed, stored.Data)
	ds.e.recorder.Secrecy.Add(written.Object, secrecy.Sealed, stored.DEKSource)
	d.Provider, d.KEKID, d.DEKSource = stored.Provider, stored.KEKID, journal.Digest(stored.DEKSource)
	if ds.wantNow() != d.Want {
		return ctx.Err() // it may have been written anew meanwhile: the census looks at it
	}
	ds.recordData(d, err)
	return ctx.Err()
}

// verifyData reads everything that was written through every API server that runs.
func (ds *dataset) verifyData(ctx context.Context) error {
	ds.mu.Lock()
	names := slices.Sorted(maps.Keys(ds.written))
	busy := ds.busy
	ds.mu.Unlock()
	names = slices.DeleteFunc(names, func(name string) bool { return name == busy })
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dataWriters)
	for _, n := range ds.e.serving() {
		for _, name := range names {
			group.Go(func() error { return ds.readOne(ctx, n, name) })
		}
	}
	return group.Wait()
}

func (ds *dataset) readOne(ctx context.Context, n *cluster.Node, name string) error {
	ds.mu.Lock()
	written := ds.written[name]
	ds.mu.Unlock()
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.Name}
	of := ds.of(name)
	var got *unstructured.Unstructured
	err := untilAnswered(reading, func(ctx context.Context) (err error) {
		got, err = n.DirectClient().Resource(of.Resource).Namespace(cluster.DataNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if err == nil {
		var value []byte
		if value, err = of.Value(got); err == nil {
			d.Digest = digest(value)
		}
	}
	ds.recordData(d, err) // what it should be the checker knows: a write that failed may have been made
	return ctx.Err()
}

// readAgain is the pause before a read that was not answered is tried again.
const readAgain = 250 * time.Millisecond

// untilAnswered repeats a request until the API server answers, also with an error, or ctx ends. Its pod may be replaced
// while objects are read, and comes back; a refused connection is no loss of data.
func untilAnswered(ctx context.Context, request func(context.Context) error) (err error) {
	ended := wait.PollUntilContextCancel(ctx, readAgain, true, func(ctx context.Context) (bool, error) {
		err = request(ctx)
		var answer apierrors.APIStatus
		return err == nil || errors.As(err, &answer), nil
	})
	if err == nil {
		return ended
	}
	return err
}

// migrateData is a storage migration without a switch: after a rotation nothing is left under the old KEK.
func (ds *dataset) migrateData(ctx context.Context) error {
	ds.e.changes.turn.Lock()
	defer ds.e.changes.turn.Unlock()
	if err := (migrator{ds.e}).migrate(ctx); err != nil {
		return err
	}
	return ds.takeInventory(ctx)
}

func (ds *dataset) recordData(d history.Data, err error) {
	d.OK = err == nil
	if err != nil {
		d.Error = err.Error()
	}
	ds.e.record(&d)
}

// takeInventory records by which keys every encrypted object in etcd is encrypted.
func (ds *dataset) takeInventory(ctx context.Context) error {
	all, err := ds.inventory(ctx)
	if err != nil {
		return err
	}
	ds.e.record(all)
	return nil
}

func (ds *dataset) inventory(ctx context.Context) (*history.StorageInventory, error) {
	ctx, cancel := context.WithTimeout(ctx, inventoryTimeout)
	defer cancel()
	from := time.Now().UTC()
	under, err := atrest.Inventory(ctx, ds.e.controlPlane.Storage, ds.kinds())
	if err != nil {
		return nil, err
	}
	return &history.StorageInventory{From: from, Under: under}, nil
}
