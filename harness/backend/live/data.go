package live

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// Limits of data: a secret holds at most 1 MiB.
const (
	maxDataCount = 1000
	maxDataBytes = 512 << 10
)

// data writes secrets through every API server in turn, or reads all that were written back through each of them.
func (e *Environment) data(ctx context.Context, a scenario.Action) error {
	op, count, size := a.Text("op"), a.Int("count", 3), a.Int("size", 256)
	switch {
	case count < 1 || count > maxDataCount || size < 1 || size > maxDataBytes:
		return fmt.Errorf("data: count is %d (1 to %d), size %d (1 to %d bytes)", count, maxDataCount, size, maxDataBytes)
	case op == "write":
		return e.writeData(ctx, count, size)
	case op == "verify":
		return e.verifyData(ctx)
	}
	return fmt.Errorf("data: op %q: expected write or verify", op)
}

func (e *Environment) writeData(ctx context.Context, count, size int) error {
	nodes := e.serving()
	if len(nodes) == 0 {
		return fmt.Errorf("data: no API server runs")
	}
	if err := e.awaitReload(ctx, nodes); err != nil {
		return err
	}
	for i := range count {
		value := make([]byte, size)
		if _, err := rand.Read(value); err != nil {
			return fmt.Errorf("data: %w", err)
		}
		if err := e.writeOne(ctx, nodes[i%len(nodes)], value); err != nil {
			return err
		}
	}
	return nil
}

// writeOne writes a secret. A write that is refused is an event, not an error: whether it should have been is the checker's
// and the scenario's business.
func (e *Environment) writeOne(ctx context.Context, n *Node, value []byte) error {
	e.mu.Lock()
	e.serial++
	name := fmt.Sprintf("data-%d", e.serial)
	want := e.writeProvider()
	e.mu.Unlock()
	writing, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	e.recorder.secrecy.Add(objectName(name), secrecy.Plain, value)
	d := history.Data{Op: history.DataWritten, Object: objectName(name), Digest: digest(value), Node: n.Name, Want: want}
	_, err := n.Admin.Resource(secretObjects()).Namespace(dataNamespace).Create(writing, secret(name, value), metav1.CreateOptions{})
	e.recordData(d, err)
	if err != nil {
		return ctx.Err()
	}
	e.mu.Lock()
	e.written[name] = d
	e.mu.Unlock()
	return e.inspect(ctx, name, d)
}

// inspect looks at a secret in etcd, past every API server.
func (e *Environment) inspect(ctx context.Context, name string, written history.Data) error {
	d := history.Data{Op: history.DataRaw, Object: written.Object, Want: written.Want}
	stored, err := e.stored(ctx, "/registry/secrets/"+dataNamespace+"/"+name)
	e.recorder.secrecy.Add(written.Object, secrecy.Sealed, stored.data)
	e.recorder.secrecy.Add(written.Object, secrecy.Sealed, stored.dek)
	d.Provider, d.KEKID, d.DEKSource = stored.provider, stored.kekID, stored.dekSource
	e.recordData(d, err)
	return ctx.Err()
}

func (e *Environment) verifyData(ctx context.Context) error {
	e.mu.Lock()
	names := make([]string, 0, len(e.written))
	for name := range e.written {
		names = append(names, name)
	}
	e.mu.Unlock()
	slices.Sort(names)
	for _, n := range e.serving() {
		for _, name := range names {
			if err := e.readOne(ctx, n, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Environment) readOne(ctx context.Context, n *Node, name string) error {
	e.mu.Lock()
	written := e.written[name]
	e.mu.Unlock()
	reading, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	d := history.Data{Op: history.DataRead, Object: written.Object, Node: n.Name}
	got, err := n.Admin.Resource(secretObjects()).Namespace(dataNamespace).Get(reading, name, metav1.GetOptions{})
	if err == nil {
		var value []byte
		text, _, _ := unstructured.NestedString(got.Object, "data", dataField)
		if value, err = base64.StdEncoding.DecodeString(text); err == nil {
			d.Digest = digest(value)
		}
	}
	if err == nil && d.Digest != written.Digest {
		err = fmt.Errorf("it has digest %s, written was %s", d.Digest, written.Digest)
	}
	e.recordData(d, err)
	return ctx.Err()
}

func (e *Environment) recordData(d history.Data, err error) {
	d.OK = err == nil
	if err != nil {
		d.Error = err.Error()
	}
	e.record(&d)
}

func objectName(name string) string { return "secrets/" + dataNamespace + "/" + name }
