// Package encryption is kube-apiserver's own encryption at rest (KMS v2 and all other types, with its probes and its reloading), for an API
// server in memory. Only the connection with a plugin is not kube-apiserver's, because that one cannot be told how to dial (plugin.go).
package encryption

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/kmsharness/kmsharness/internal/host"
)

// Encryption is what an API server encrypts with.
type Encryption struct {
	dynamic *encryptionconfig.DynamicTransformers
	file    string
	name    string
	plugins *plugins
	loaded  atomic.Value // hash of the configuration in force
}

// Lines are where the lines about operations go; the zero Lines are nowhere.
type Lines struct {
	Log *Log
	To  io.Writer
}

// Load reads an EncryptionConfiguration, and connects with its plugins from a host. Plugins that do not answer do not keep it from loading. It
// ends with ctx.
func Load(ctx context.Context, h host.Host, file, apiServer string, lines Lines) (*Encryption, error) {
	install()
	e := &Encryption{file: file, name: apiServer, plugins: &plugins{host: h, lines: lines}}
	c, _, end, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	e.dynamic = encryptionconfig.NewDynamicTransformers(c.Transformers, c.HealthChecks[0], end, c.KMSCloseGracePeriod)
	e.loaded.Store(c.EncryptionFileContentHash)
	return e, nil
}

// read reads the file, and connects with the plugins that it names until end is called. own is their context.
func (e *Encryption) read(ctx context.Context) (c *encryptionconfig.EncryptionConfiguration, own context.Context, end context.CancelFunc, err error) {
	own, end = context.WithCancel(context.WithValue(ctx, pluginsKey{}, e.plugins))
	c, err = encryptionconfig.LoadEncryptionConfig(own, e.file, true, e.name)
	if err == nil && len(c.HealthChecks) != 1 {
		err = fmt.Errorf("%d health checks, expected one", len(c.HealthChecks))
	}
	if err != nil {
		end()
		return nil, nil, nil, fmt.Errorf("load the encryption configuration %s: %w", e.file, err)
	}
	return c, own, end, nil
}

// Loaded is the hash of the configuration in force, as kube-apiserver names it: sha256:HEX.
func (e *Encryption) Loaded() string {
	hash, _ := e.loaded.Load().(string)
	return hash
}

// Timing of a reload, as in kube-apiserver.
const (
	// DefaultPoll is how often an API server looks for a changed configuration.
	DefaultPoll = time.Minute
	// validation is how long the plugins of a new configuration have to be healthy.
	validation = 10 * time.Second
	// retry comes after a configuration that could not be used.
	retry = time.Second
)

// Reload follows the file until ctx ends, and looks at it every so often. A configuration that is wrong, or has a plugin that is not healthy, does
// not come into force, and is tried again. kube-apiserver's controller does the same; it holds the mutex of Ready while it waits.
func (e *Encryption) Reload(ctx context.Context, every time.Duration) {
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := every
		if hash, err := encryptionconfig.GetEncryptionConfigHash(e.file); err == nil && hash != e.Loaded() && e.renew(ctx) != nil {
			next = retry
		}
		timer.Reset(next)
	}
}

// renew puts the file in force.
func (e *Encryption) renew(ctx context.Context) error {
	c, own, end, err := e.read(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(own, validation)
	defer cancel()
	if err := e.plugins.await(limited, own); err != nil {
		end()
		return err
	}
	e.dynamic.Set(c.Transformers, end, c.HealthChecks[0], c.KMSCloseGracePeriod)
	e.loaded.Store(c.EncryptionFileContentHash)
	return nil
}

// Transformer encrypts a resource; what is not configured stays as it is.
func (e *Encryption) Transformer(r schema.GroupResource) value.Transformer {
	return e.dynamic.TransformerForResource(r)
}

// Ready is an error if a plugin is not healthy. kube-apiserver's own health check is not called, because it holds a mutex while it waits for a
// plugin: in virtual time a second one, or a probe, would wait for that mutex for ever.
func (e *Encryption) Ready(r *http.Request) error { return e.plugins.ready(r.Context()) }

// pluginsKey is the key under which a context has the plugins of an API server.
type pluginsKey struct{}

// install makes kube-apiserver's code connect as package encryption does. It is the only way in, and the same for everybody.
var install = sync.OnceFunc(func() { encryptionconfig.EnvelopeKMSv2ServiceFactory = connect })
