package sim

import (
	"fmt"
	"slices"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kmsharness/kmsharness/operator/encryption"
)

// envelope is the KMS v2 encryption of an API server: the configuration in its file, and what of it is in force.
type envelope struct {
	s       *server
	wanted  encryption.List // the file: the first provider writes, all of them read
	loaded  *loaded         // nil until the server starts
	failed  int             // loads of the file, one after the other
	loading bool
	primed  time.Time // when it first looked at the file
	reads   bool      // the next look is planned
}

func providerName(keyID string) string {
	return encryption.Provider{Type: encryption.KMS, KeyID: keyID}.Name()
}

// loaded is a configuration that was taken from the file, with providers of its own: nothing is shared with the one before.
type loaded struct {
	config    encryption.List
	providers []*provider
}

func newEnvelope(s *server) *envelope { return &envelope{s: s} }

// forget is the end of the process; the file stays.
func (e *envelope) forget() { *e = envelope{s: e.s, wanted: e.wanted} }

// prime loads the file at the start. A plugin that does not answer fails nothing but what needs it.
func (e *envelope) prime() {
	if e.loaded != nil {
		return
	}
	e.primed = e.s.w.k.Now()
	e.loaded = e.load(e.wanted, func() {})
}

// load makes the providers of a configuration, one after the other, each of which asks its plugin once.
func (e *envelope) load(c encryption.List, then func()) *loaded {
	l, plugins := &loaded{config: c}, c.KeyIDs(encryption.KMS)
	var next func(int)
	next = func(i int) {
		if i == len(plugins) {
			then()
			return
		}
		p := newProvider(e, plugins[i])
		l.providers = append(l.providers, p)
		p.run(func() { next(i + 1) })
	}
	next(0)
	return l
}

// provider is that of a keyID; nil if the configuration has none.
func (l *loaded) provider(keyID string) *provider {
	if l == nil {
		return nil
	}
	i := slices.IndexFunc(l.providers, func(p *provider) bool { return p.keyID == keyID })
	if i < 0 {
		return nil
	}
	return l.providers[i]
}

// names of the providers; none before the first load.
func (l *loaded) names() []string {
	if l == nil {
		return nil
	}
	return l.config.Names()
}

func (l *loaded) close() {
	for _, p := range l.providers {
		p.closed = true
	}
}

// check is /healthz/kms-providers: all providers, one after the other, so that hung ones add up.
func (l *loaded) check(done func(error)) {
	var errs []error
	var next func(int)
	next = func(i int) {
		if i == len(l.providers) {
			done(utilerrors.Reduce(utilerrors.NewAggregate(errs)))
			return
		}
		l.providers[i].check(func(err error) {
			if err != nil {
				errs = append(errs, fmt.Errorf("kms-provider-%d: %w", i, err))
			}
			next(i + 1)
		})
	}
	next(0)
}
