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

// data writes secrets through every API server in turn, reads all that were written back through each of them, or writes every
// secret anew.
func (e *environment) data(ctx context.Context, a *scenario.Data) error {
	count, size := a.Objects()
	switch op := a.Op; {
	case count < 1 || count > scenario.MaxObjects || size < 1 || size > scenario.MaxObjectBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, scenario.MaxObjects, size, scenario.MaxObjectBytes)
	case op == scenario.DataWrite:
		return e.writeData(count, size)
	case op == scenario.DataVerify:
		return e.verifyData(ctx)
	case op == scenario.DataMigrate:
		return e.migrateData()
	default:
		return fmt.Errorf("data: op %q: expected write, verify or migrate", op)
	}
}

func (e *environment) writeData(count, size int) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return errors.New("data: no API server runs")
	}
	if e.pods == nil {
		if err := e.awaitReload(nodes, 0); err != nil {
			return err
		}
	}
	for i := range count {
		e.writeNew(nodes[i%len(nodes)], size)
	}
	return nil
}

// writeNew writes a secret that nobody knows.
func (e *environment) writeNew(n *node, size int) {
	value := make([]byte, size)
	_, _ = bytesOf{e.w.k.Rand()}.Read(value)
	e.serial++
	e.writeOne(n, fmt.Sprintf("data-%d", e.serial), value)
}

// writeOne writes a secret, and looks at it in etcd. A write that is refused is an event, not an error.
func (e *environment) writeOne(n *node, name string, value []byte) {
	e.w.secrecy.Add(e.w.encrypts.objectName(name), secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: e.w.encrypts.objectName(name), Digest: digest(value), Node: n.name, Want: e.wantNow()}
	err := e.store(n, name, value)
	if d.Want != e.wantNow() {
		d.Want = "" // it changed meanwhile
	}
	e.recordData(d, err)
	if err != nil {
		return
	}
	e.written[name] = d
	if e.pods != nil && e.wantNow() != d.Want {
		return // it may have been written anew meanwhile: the census looks at it
	}
	stored := e.w.secrets[name]
	e.recordData(history.Data{Op: history.DataRaw, Object: d.Object, Want: d.Want, Provider: stored.provider, KEKID: stored.kekID, DEKSource: journal.Digest(stored.sealed)}, nil)
}

// wantNow is the provider that encrypts what is written now; empty while not every API server has loaded what it was told.
func (e *environment) wantNow() string {
	if e.pods != nil {
		return e.pods.writer()
	}
	for _, n := range e.serving() {
		if !n.server.envelope.current() {
			return ""
		}
	}
	return e.told.Writer().Name()
}

// watched does something to the encryption with an eye on the data: objects of all sizes are written before it, new and old ones
// while it lasts, and again after it. Then every object in etcd is looked at.
func (e *environment) watched(mine int, do func() error) error {
	e.writeSizes(append(scenario.DataSizes(), scenario.MaxObjectBytes))
	end := e.startLoad(mine)
	err := do()
	end()
	if err != nil {
		return err
	}
	e.writeSizes(scenario.DataSizes())
	e.census()
	return nil
}

func (e *environment) writeSizes(sizes []int) {
	nodes := e.serving()
	for i, size := range sizes {
		if len(nodes) > 0 {
			e.writeNew(nodes[i%len(nodes)], size)
		}
	}
}

// loadEvery is how often the load of a switch writes.
const loadEvery = 200 * time.Millisecond

// startLoad writes until it is ended: every second time a new object, otherwise one that is being migrated, perhaps.
func (e *environment) startLoad(mine int) (end func()) {
	over, idle, name := false, func() {}, fmt.Sprintf("load-%d", mine)
	e.busy = name
	running := true
	e.w.k.Go(func() {
		defer func() { running = false; idle() }()
		for i := 0; !over && e.w.k.Sleep(loadEvery) == nil && !over; i++ {
			e.loadOne(i, name)
		}
	})
	return func() {
		over = true
		if running {
			_ = e.w.k.Suspend(func(done func()) { idle = done }) // ends with the simulation at the latest
		}
		e.busy = ""
	}
}

func (e *environment) loadOne(i int, mine string) {
	nodes := e.serving()
	if len(nodes) == 0 {
		return
	}
	n, sizes := nodes[i%len(nodes)], scenario.DataSizes()
	if i%2 == 0 {
		e.writeNew(n, sizes[i/2%len(sizes)])
		return
	}
	e.writeOne(n, mine, scenario.LoadValue(mine, i))
}

func (e *environment) verifyData(ctx context.Context) error {
	for _, n := range e.serving() {
		for _, name := range slices.Sorted(maps.Keys(e.written)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if name == e.busy {
				continue
			}
			written := e.written[name]
			d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.name}
			read, err := e.load(n, name)
			if err == nil {
				d.Digest = read.digest()
			}
			e.recordData(d, err)
		}
	}
	return nil
}

func (e *environment) recordData(d history.Data, err error) {
	d.OK = err == nil
	if err != nil {
		d.Error = err.Error()
	}
	e.w.record("backend", &d)
}

// store writes an object.
func (e *environment) store(n *node, name string, value []byte) error {
	return e.within(requestTimeout, func(done func(error)) {
		n.through(func(s *server, done func(error)) { s.store(name, value, done) }, n.server.traced(verbCreate, name, http.StatusCreated, done))
	})
}

// load reads an object from an API server itself, past every other.
func (e *environment) load(n *node, name string) (read *secret, err error) {
	err = e.within(requestTimeout, func(done func(error)) {
		noted := n.server.traced(verbGet, name, http.StatusOK, done)
		n.server.load(name, func(s *secret, err error) { read = s; noted(err) })
	})
	return read, err
}
