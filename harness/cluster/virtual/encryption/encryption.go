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
	"k8s.io/kms/pkg/service"

	"github.com/kmsharness/kmsharness/internal/host"
	"github.com/kmsharness/kmsharness/internal/poll"
	"github.com/kmsharness/kmsharness/internal/turn"
)

// Encryption is what an API server encrypts with.
type Encryption struct {
	dynamic *encryptionconfig.DynamicTransformers
	file    string
	name    string
	around  Around
	plugins *plugins
	checks  turn.Turn
	inForce atomic.Pointer[configuration]
}

type configuration struct {
	*encryptionconfig.EncryptionConfiguration
	ctx context.Context // of its plugins
	end context.CancelFunc
}

// Lines are where the lines about operations go; the zero Lines are nowhere.
type Lines struct {
	Log *Log
	To  io.Writer
}

// Around puts other code around kube-apiserver's, for an API server that is wrong on purpose. What is nil leaves it as it is.
type Around struct {
	// Plugin is around the connection with a plugin.
	Plugin func(service.Service) service.Service
	// Transformer is around what reads and writes stored objects. It may write to the log of the API server.
	Transformer func(next value.Transformer, log io.Writer) value.Transformer
}

// Load reads an EncryptionConfiguration, and connects with its plugins from a host. Plugins that do not answer do not keep it from loading. It
// ends with ctx.
func Load(ctx context.Context, h host.Host, file, apiServer string, lines Lines, around Around) (*Encryption, error) {
	install()
	e := &Encryption{file: file, name: apiServer, around: around, plugins: &plugins{host: h, lines: lines, around: around.Plugin}, checks: turn.New()}
	c, err := e.read(ctx)
	if err != nil {
		return nil, err
	}
	e.dynamic = encryptionconfig.NewDynamicTransformers(c.Transformers, c.HealthChecks[0], c.end, c.KMSCloseGracePeriod)
	e.inForce.Store(c)
	go e.prime(c)
	return e, nil
}

// read reads the file, and connects with the plugins that it names until its end is called.
func (e *Encryption) read(ctx context.Context) (*configuration, error) {
	ctx, end := context.WithCancel(context.WithValue(ctx, pluginsKey{}, e.plugins))
	c, err := encryptionconfig.LoadEncryptionConfig(ctx, e.file, true, e.name)
	if err == nil && len(c.HealthChecks) != 1 {
		err = fmt.Errorf("%d health checks, expected one", len(c.HealthChecks))
	}
	if err != nil {
		end()
		return nil, fmt.Errorf("load the encryption configuration %s: %w", e.file, err)
	}
	return &configuration{c, ctx, end}, nil
}

// Loaded is the hash of the configuration in force, as kube-apiserver names it: sha256:HEX.
func (e *Encryption) Loaded() string { return e.inForce.Load().EncryptionFileContentHash }

// Timing of a reload, as in kube-apiserver.
const (
	// DefaultPoll is how often an API server looks for a changed configuration.
	DefaultPoll = time.Minute
	// validation is how long the plugins of a new configuration have to be healthy.
	validation = 10 * time.Second
	// validationPoll is how often they are asked meanwhile.
	validationPoll = 100 * time.Millisecond
	// retry comes after a configuration that could not be used.
	retry = time.Second
)

// Reload follows the file until ctx ends, and looks at it every so often. A configuration that is wrong, or has a plugin that is not healthy, does
// not come into force, and is tried again. kube-apiserver's controller does the same; it holds the mutex of Ready while it waits.
func (e *Encryption) Reload(ctx context.Context, every time.Duration) {
	for next := every; poll.Pause(ctx, next) == nil; {
		next = every
		if hash, err := encryptionconfig.GetEncryptionConfigHash(e.file); err == nil && hash != e.Loaded() && e.renew(ctx) != nil {
			next = retry
		}
	}
}

func (e *Encryption) renew(ctx context.Context) error {
	c, err := e.read(ctx)
	if err != nil {
		return err
	}
	if err := e.validate(c); err != nil {
		c.end()
		return err
	}
	e.dynamic.Set(c.Transformers, c.end, c.HealthChecks[0], c.KMSCloseGracePeriod)
	e.inForce.Store(c)
	go e.prime(c)
	return nil
}

// prime checks a configuration until all its plugins have been healthy once. kube-apiserver has two probe loops for a plugin that did not answer at
// first. When both probe every ten seconds, they do in the same instant, and neither can wait for an answer (plugin.take).
func (e *Encryption) prime(c *configuration) {
	for {
		next := e.plugins.unprimed(c.ctx)
		if next.IsZero() {
			return
		}
		select {
		case <-time.After(time.Until(next)):
			_ = e.check(c.ctx, c) // the next check finds the same error
		case <-c.ctx.Done():
			return
		}
	}
}

// validate returns when all plugins of a configuration are healthy.
func (e *Encryption) validate(c *configuration) error {
	ctx, cancel := context.WithTimeout(c.ctx, validation)
	defer cancel()
	ticker := time.NewTicker(validationPoll)
	defer ticker.Stop()
	for {
		err := e.check(ctx, c)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Transformer encrypts a resource; what is not configured stays as it is.
func (e *Encryption) Transformer(r schema.GroupResource) value.Transformer {
	t := e.dynamic.TransformerForResource(r)
	if e.around.Transformer != nil {
		t = e.around.Transformer(t, e.plugins.lines.To)
	}
	return t
}

// Ready is an error if a plugin is not healthy.
func (e *Encryption) Ready(r *http.Request) error { return e.check(r.Context(), e.inForce.Load()) }

// check is kube-apiserver's health check of a configuration, which may have a plugin rotate its data key. It begins when the mutex of every plugin
// is free, and ends before a probe loop may need it.
func (e *Encryption) check(ctx context.Context, c *configuration) error {
	e.checks.Lock()
	defer e.checks.Unlock()
	for {
		busy, until := e.plugins.free(c.ctx)
		switch {
		case busy != nil:
			select {
			case <-busy:
			case <-ctx.Done():
				return fmt.Errorf("wait for a probe of a kms plugin: %w", context.Cause(ctx))
			}
		case until.IsZero() || time.Until(until) > 0:
			ctx = context.WithValue(ctx, checking{}, true)
			if !until.IsZero() {
				var cancel context.CancelFunc
				ctx, cancel = context.WithDeadline(ctx, until.Add(-1))
				defer cancel()
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/healthz", nil)
			if err != nil {
				return err
			}
			return c.HealthChecks[0].Check(r)
		}
		time.Sleep(time.Nanosecond) // the holder of the mutex goes on or releases it within this instant
	}
}

// pluginsKey is the key under which a context has the plugins of an API server.
type pluginsKey struct{}

// install makes kube-apiserver's code connect as package encryption does. It is the only way in, and the same for everybody.
var install = sync.OnceFunc(func() { encryptionconfig.EnvelopeKMSv2ServiceFactory = connect })
