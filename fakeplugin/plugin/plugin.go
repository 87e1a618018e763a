package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/profile"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// Limits and defaults. The poll is far more frequent than anybody's Status, so that Status is answered from memory and
// is still never older than a fraction of the shortest interval in use (1 s).
const (
	DefaultPoll  = 200 * time.Millisecond
	MaxNoticeLag = 24 * time.Hour
)

// Options of a Plugin. Service and Key are required.
type Options struct {
	Name      string // NODE/KEYID, as the remote KMS knows the caller
	Key       string // the remote key
	Service   remotekms.Service
	Clock     clock.WithTicker
	Poll      time.Duration
	NoticeLag time.Duration
	Profile   *profile.Profile // of a provider; nil: its key_id is the KEK's id
	// Decide is what to do about the lease, where the provider has leases; nil: the package's Decide.
	Decide func(Session, time.Time) Act
	// UIDOptional accepts requests without a uid; otherwise they are an InvalidArgument.
	UIDOptional bool
}

// Plugin is the honest service. It is safe for concurrent use.
type Plugin struct {
	o    Options
	lag  atomic.Int64
	view atomic.Pointer[View]
	of   atomic.Pointer[profile.Profile]
	mu   sync.Mutex // one update of the view at a time

	session session
}

// New is a plugin that knows nothing yet; Run or Poll lets it look.
func New(o Options) *Plugin {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Poll <= 0 {
		o.Poll = DefaultPoll
	}
	if o.Decide == nil {
		o.Decide = Decide
	}
	p := &Plugin{o: o}
	p.lag.Store(int64(o.NoticeLag))
	p.of.Store(o.Profile)
	p.view.Store(&View{Problem: "starting: the remote KMS was not asked yet"})
	return p
}

// Run looks at the remote KMS until ctx ends.
func (p *Plugin) Run(ctx context.Context) {
	ticker := p.o.Clock.NewTicker(p.o.Poll)
	defer ticker.Stop()
	for {
		_ = p.Poll(ctx) // the view keeps the problem
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

// Poll looks at the remote KMS once. A rotation is noticed if it was seen long enough ago.
func (p *Plugin) Poll(ctx context.Context) error { return p.look(ctx, p.NoticeLag()) }

// Notice looks at the remote KMS once and notices a rotation whatever the lag.
func (p *Plugin) Notice(ctx context.Context) error { return p.look(ctx, 0) }

func (p *Plugin) look(ctx context.Context, lag time.Duration) error {
	var key remotekms.Key
	err := p.leased(ctx, "", func(caller remotekms.Caller) (err error) {
		key, err = p.o.Service.Describe(ctx, caller, p.o.Key)
		return err
	})
	if ctx.Err() != nil {
		return ctx.Err() // stopped, which says nothing about the KMS
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var v View
	if err != nil {
		v = p.View().fail(err)
	} else {
		v = p.View().observe(key, p.o.Clock.Now(), lag)
	}
	p.view.Store(&v)
	return err
}

func (p *Plugin) View() View { return *p.view.Load() }

// NoticeLag is how long a new KEK stays unnoticed after it was first seen.
func (p *Plugin) NoticeLag() time.Duration { return time.Duration(p.lag.Load()) }

// SetNoticeLag changes the lag, also for a KEK that was seen and not yet noticed.
func (p *Plugin) SetNoticeLag(lag time.Duration) { p.lag.Store(int64(lag)) }

// Rotate rotates the remote key, for all plugins that use it. Each notices with its own lag.
func (p *Plugin) Rotate(ctx context.Context, reuse int) (keyring.KEK, error) {
	return p.o.Service.Rotate(ctx, p.o.Key, reuse)
}

// KeyID is what the plugin answers as key_id for a KEK: by its profile, or else the KEK's own id; "" for a KEK without an id.
func (p *Plugin) KeyID(k keyring.KEK) string {
	of := p.of.Load()
	if of == nil {
		return k.ID
	}
	return of.KeyID.Of(profile.Key{Name: p.o.Key, KEK: k.ID, Version: k.Version, Created: k.Created})
}

// Profile is the provider that the plugin stands for, nil if there is none.
func (p *Plugin) Profile() *profile.Profile { return p.of.Load() }

// SetProfile makes it stand for another provider, or none. To its clients that looks like a rotation.
func (p *Plugin) SetProfile(of *profile.Profile) { p.of.Store(of) }

// Key is the name of the remote key.
func (p *Plugin) Key() string { return p.o.Key }
