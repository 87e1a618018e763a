package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// dataset is the objects that are encrypted: it writes, reads and migrates them.
type dataset struct {
	e       *environment
	w       *world
	written map[string]history.Data
	serial  int
	busy    string // the secret that is being written again and again: nobody can say what a read of it should give
}

// data writes secrets through every API server in turn, reads all that were written back through each of them, or writes every
// secret anew.
func (ds *dataset) data(ctx context.Context, a *scenario.Data) error {
	count, size := a.Objects()
	switch op := a.Op; {
	case count < 1 || count > scenario.MaxObjects || size < 1 || size > scenario.MaxObjectBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, scenario.MaxObjects, size, scenario.MaxObjectBytes)
	case op == scenario.DataWrite:
		return ds.writeData(count, size)
	case op == scenario.DataVerify:
		return ds.verifyData(ctx)
	case op == scenario.DataMigrate:
		return ds.migrateData()
	default:
		return fmt.Errorf("data: op %q: expected write, verify or migrate", op)
	}
}

func (ds *dataset) writeData(count, size int) error {
	nodes := ds.e.serving()
	if len(nodes) == 0 {
		return errors.New("data: no API server runs")
	}
	if ds.e.pods == nil {
		if err := ds.e.switching.awaitReload(nodes, 0); err != nil {
			return err
		}
	}
	for i := range count {
		ds.writeNew(nodes[i%len(nodes)], size)
	}
	return nil
}

// writeNew writes a secret that nobody knows.
func (ds *dataset) writeNew(n *node, size int) {
	value := make([]byte, size)
	_, _ = bytesOf{ds.w.k.Rand()}.Read(value)
	ds.serial++
	ds.writeOne(n, fmt.Sprintf("data-%d", ds.serial), value)
}

// writeOne writes a secret, and looks at it in etcd. A write that is refused is an event, not an error.
func (ds *dataset) writeOne(n *node, name string, value []byte) {
	ds.w.secrecy.Add(ds.w.encrypts.objectName(name), secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: ds.w.encrypts.objectName(name), Digest: digest(value), Node: n.name, Want: ds.wantNow()}
	err := ds.store(n, name, value)
	if d.Want != ds.wantNow() {
		d.Want = "" // it changed meanwhile
	}
	ds.recordData(d, err)
	if err != nil {
		return
	}
	ds.written[name] = d
	if ds.e.pods != nil && ds.wantNow() != d.Want {
		return // it may have been written anew meanwhile: the census looks at it
	}
	stored := ds.w.secrets[name]
	ds.recordData(history.Data{Op: history.DataRaw, Object: d.Object, Want: d.Want, Provider: stored.provider, KEKID: stored.kekID, DEKSource: journal.Digest(stored.sealed)}, nil)
}

// wantNow is the provider that encrypts what is written now; empty while not every API server has loaded what it was told.
func (ds *dataset) wantNow() string {
	if ds.e.pods != nil {
		return ds.e.pods.writer()
	}
	for _, n := range ds.e.serving() {
		if !n.server.envelope.current() {
			return ""
		}
	}
	return ds.e.switching.configured.Writer().Name()
}

// watched does something to the encryption with an eye on the data: objects of all sizes are written before it, new and old ones
// while it lasts, and again after it. Then every object in etcd is looked at.
func (ds *dataset) watched(mine int, do func() error) error {
	ds.writeSizes(append(scenario.DataSizes(), scenario.MaxObjectBytes))
	end := ds.startLoad(mine)
	err := do()
	end()
	if err != nil {
		return err
	}
	ds.writeSizes(scenario.DataSizes())
	ds.takeInventory()
	return nil
}

func (ds *dataset) writeSizes(sizes []int) {
	nodes := ds.e.serving()
	for i, size := range sizes {
		if len(nodes) > 0 {
			ds.writeNew(nodes[i%len(nodes)], size)
		}
	}
}

// loadEvery is how often the load of a switch writes.
const loadEvery = 200 * time.Millisecond

// startLoad writes until it is ended: every second time a new object, otherwise one that is being migrated, perhaps.
func (ds *dataset) startLoad(mine int) (end func()) {
	over, idle, name := false, func() {}, fmt.Sprintf("load-%d", mine)
	ds.busy = name
	running := true
	ds.w.k.Go(func() {
		defer func() { running = false; idle() }()
		for i := 0; !over && ds.w.k.Sleep(loadEvery) == nil && !over; i++ {
			ds.loadOne(i, name)
		}
	})
	return func() {
		over = true
		if running {
			_ = ds.w.k.Suspend(func(done func()) { idle = done }) // ends with the simulation at the latest
		}
		ds.busy = ""
	}
}

func (ds *dataset) loadOne(i int, mine string) {
	nodes := ds.e.serving()
	if len(nodes) == 0 {
		return
	}
	n, sizes := nodes[i%len(nodes)], scenario.DataSizes()
	if i%2 == 0 {
		ds.writeNew(n, sizes[i/2%len(sizes)])
		return
	}
	ds.writeOne(n, mine, scenario.LoadValue(mine, i))
}

func (ds *dataset) verifyData(ctx context.Context) error {
	for _, n := range ds.e.serving() {
		for _, name := range slices.Sorted(maps.Keys(ds.written)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if name == ds.busy {
				continue
			}
			written := ds.written[name]
			d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.name}
			read, err := ds.load(n, name)
			if err == nil {
				d.Digest = read.digest()
			}
			ds.recordData(d, err)
		}
	}
	return nil
}

func (ds *dataset) recordData(d history.Data, err error) {
	d.OK = err == nil
	if err != nil {
		d.Error = err.Error()
	}
	ds.w.record("backend", &d)
}

// store writes an object.
func (ds *dataset) store(n *node, name string, value []byte) error {
	return ds.e.within(requestTimeout, func(done func(error)) {
		n.through(func(s *server, done func(error)) { s.store(name, value, done) }, n.server.traced(verbCreate, name, http.StatusCreated, done))
	})
}

// load reads an object from an API server itself, past every other.
func (ds *dataset) load(n *node, name string) (read *secret, err error) {
	err = ds.e.within(requestTimeout, func(done func(error)) {
		noted := n.server.traced(verbGet, name, http.StatusOK, done)
		n.server.load(name, func(s *secret, err error) { read = s; noted(err) })
	})
	return read, err
}
