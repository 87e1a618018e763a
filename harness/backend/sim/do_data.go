package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/record/secrecy"
	"github.com/kmsharness/kmsharness/harness/scenario"
)

// Limits of data, as on real backends.
const (
	maxDataCount = 1000
	maxDataBytes = 512 << 10
)

// data writes secrets through every API server in turn, or reads all that were written back through each of them.
func (e *environment) data(ctx context.Context, a scenario.Action) error {
	op, count, size := a.Text("op"), a.Int("count", 3), a.Int("size", 256)
	switch {
	case count < 1 || count > maxDataCount || size < 1 || size > maxDataBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, maxDataCount, size, maxDataBytes)
	case op == "write":
		return e.writeData(count, size)
	case op == "verify":
		return e.verifyData(ctx)
	}
	return fmt.Errorf("data: op %q: expected write or verify", op)
}

func (e *environment) writeData(count, size int) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return errors.New("data: no API server runs")
	}
	if err := e.awaitReload(nodes); err != nil {
		return err
	}
	for i := range count {
		value := make([]byte, size)
		_, _ = bytesOf{e.w.k.Rand()}.Read(value)
		e.writeOne(nodes[i%len(nodes)], value)
	}
	return nil
}

// writeOne writes a secret, and looks at it in etcd. A write that is refused is an event, not an error.
func (e *environment) writeOne(n *node, value []byte) {
	e.serial++
	name := fmt.Sprintf("data-%d", e.serial)
	want := encryptionConfig{e.w.keyIDs, e.identity}.writer()
	e.w.secrecy.Add(objectName(name), secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: objectName(name), Digest: digest(value), Node: n.name, Want: want}
	err := e.store(n, name, value)
	e.recordData(d, err)
	if err != nil {
		return
	}
	e.written[name] = d
	stored := e.w.secrets[name]
	e.recordData(history.Data{Op: history.DataRaw, Object: d.Object, Want: d.Want, Provider: stored.provider, KEKID: stored.kekID, DEKSource: journal.Digest(stored.sealed)}, nil)
}

func (e *environment) verifyData(ctx context.Context) error {
	for _, n := range e.serving() {
		for _, name := range slices.Sorted(maps.Keys(e.written)) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			written := e.written[name]
			d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.name}
			value, err := e.load(n, name)
			if err == nil {
				d.Digest = digest(value)
			}
			if err == nil && d.Digest != written.Digest {
				err = fmt.Errorf("it has digest %s, written was %s", d.Digest, written.Digest)
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

func (e *environment) store(n *node, name string, value []byte) error {
	return e.within(requestTimeout, func(done func(error)) {
		n.server.store(name, value, n.server.traced(verbCreate, name, http.StatusCreated, done))
	})
}

func (e *environment) load(n *node, name string) (value []byte, err error) {
	err = e.within(requestTimeout, func(done func(error)) {
		noted := n.server.traced(verbGet, name, http.StatusOK, done)
		n.server.load(name, func(v []byte, err error) { value = v; noted(err) })
	})
	return value, err
}
