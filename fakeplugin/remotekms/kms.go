package remotekms

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
)

// Bounds of the model: more is a mistake of the caller, not a test.
const (
	MaxKeys  = 1000
	MaxRules = 1000
)

var keyName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Options of a KMS. The zero value works: in memory, real time.
type Options struct {
	Clock     clock.Clock
	Journal   *journal.Log[Operation]
	Log       *slog.Logger
	StateFile string // keys and rules survive a kill in it; "" keeps them in memory only
}

// KMS is the model. It is safe for concurrent use.
type KMS struct {
	o Options

	change sync.Mutex // one change at a time, with its state file
	mu     sync.RWMutex
	rings  map[string]*keyring.Ring
	rules  []Rule
	leases map[string]Lease // by plugin; a restart ends them
	logIns int              // so far
	// windows are what callers of a rule with a limit did, by kind of request and plugin.
	windows map[string]window
}

// New is a KMS with what its state file holds, if there is one.
func New(o Options) (*KMS, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Journal == nil {
		o.Journal = journal.New[Operation](journal.DefaultCapacity, nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	k := &KMS{o: o, rings: map[string]*keyring.Ring{}, leases: map[string]Lease{}, windows: map[string]window{}}
	return k, k.load()
}

// Describe implements Service.
func (k *KMS) Describe(ctx context.Context, caller Caller, key string) (Key, error) {
	treatment, err := k.admit(ctx, caller)
	if err != nil {
		k.record(Operation{Op: "describe", Key: key, Plugin: caller.Plugin}, err)
		return Key{}, err
	}
	ring, err := k.ensure(key)
	if err != nil {
		return Key{}, err
	}
	described := describe(key, ring)
	if treatment.Deny {
		described.Denied = denied(caller).Error()
	}
	return described, nil
}

func denied(caller Caller) error {
	return keyring.Refuse(keyring.CodeDenied, "access denied for %s", caller.Plugin)
}

func describe(name string, ring *keyring.Ring) Key {
	current, _ := ring.Current()
	return Key{Name: name, Current: current, KEKs: ring.List()}
}

// Encrypt implements Service.
func (k *KMS) Encrypt(ctx context.Context, caller Caller, key string, ref keyring.Ref, plaintext []byte) (Sealed, error) {
	var sealed Sealed
	began := k.o.Clock.Now().UTC()
	kek, err := k.use(ctx, caller, key, func(ring *keyring.Ring) (kek keyring.KEK, err error) {
		sealed.Ciphertext, sealed.KEK, err = ring.Seal(ref, plaintext)
		return sealed.KEK, err
	})
	k.record(Operation{Began: began, Op: "encrypt", Key: key, Plugin: caller.Plugin, UID: caller.UID, KEKID: cmp.Or(kek.ID, journal.Text(ref.ID)), Version: kek.Version}, err)
	return sealed, err
}

// Decrypt implements Service.
func (k *KMS) Decrypt(ctx context.Context, caller Caller, key string, ciphertext []byte) ([]byte, error) {
	var plaintext []byte
	began := k.o.Clock.Now().UTC()
	kek, err := k.use(ctx, caller, key, func(ring *keyring.Ring) (kek keyring.KEK, err error) {
		plaintext, kek, err = ring.Open(ciphertext)
		return kek, err
	})
	k.record(Operation{Began: began, Op: "decrypt", Key: key, Plugin: caller.Plugin, UID: caller.UID, KEKID: kek.ID, Version: kek.Version}, err)
	return plaintext, err
}

func (k *KMS) use(ctx context.Context, caller Caller, key string, do func(*keyring.Ring) (keyring.KEK, error)) (keyring.KEK, error) {
	treatment, err := k.admit(ctx, caller)
	if err != nil {
		return keyring.KEK{}, err
	}
	if treatment.Deny {
		return keyring.KEK{}, denied(caller)
	}
	k.mu.Lock()
	err = k.take("calls", caller.Plugin, treatment.CallsPerSecond, time.Second)
	k.mu.Unlock()
	if err != nil {
		return keyring.KEK{}, err
	}
	ring := k.ring(key)
	if ring == nil {
		return keyring.KEK{}, keyring.Refuse(CodeNoKey, "there is no key %.64q", key)
	}
	return do(ring)
}

// admit makes a caller wait as its rules say, and turns it away if it is cut off or its lease is not usable.
func (k *KMS) admit(ctx context.Context, caller Caller) (Rule, error) {
	t, err := k.reach(ctx, caller)
	if err != nil || caller.Lease == "" {
		return t, err
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return t, k.leases[caller.Plugin].Usable(caller.Lease, k.o.Clock.Now())
}

// Lease implements Service.
func (k *KMS) Lease(ctx context.Context, caller Caller, terms Terms) (Lease, error) {
	lease, err := k.grant(ctx, caller, terms)
	op := "log-in"
	if caller.Lease != "" {
		op = "renew"
	}
	if err != nil || op == "log-in" { // renewals that succeed are many
		k.record(Operation{Op: op, Plugin: caller.Plugin}, err)
	}
	return lease, err
}

func (k *KMS) grant(ctx context.Context, caller Caller, terms Terms) (lease Lease, err error) {
	t, err := k.reach(ctx, caller)
	if err != nil {
		return Lease{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Clock.Now()
	if caller.Lease != "" {
		lease, err = k.leases[caller.Plugin].Renewed(caller.Lease, terms, now)
	} else {
		k.logIns++
		if err := k.take("log-ins", caller.Plugin, t.LogInsPerMinute, time.Minute); err != nil {
			return Lease{}, err
		}
		if caller.by() == ByCertificate && !caller.Certificate.Usable(now) {
			t.LogIn = RefusedCertificate
		}
		lease, err = Grant(fmt.Sprintf("%s#%d", caller.Plugin, k.logIns), terms, t.LogIn, now)
	}
	if err == nil {
		k.leases[caller.Plugin] = lease
	}
	return lease, err
}

// reach makes a caller wait as its rules say, and turns it away if it is cut off.
func (k *KMS) reach(ctx context.Context, caller Caller) (Rule, error) {
	k.mu.RLock()
	t := treat(k.rules, caller)
	k.mu.RUnlock()
	if t.CutOff == CutRefuse {
		return t, fmt.Errorf("%w: %s is cut off", ErrUnreachable, caller.Plugin)
	}
	if t.CutOff == CutHang {
		<-ctx.Done()
		return t, fmt.Errorf("%w: %s is cut off: %w", ErrUnreachable, caller.Plugin, ctx.Err())
	}
	if t.Latency == 0 {
		return t, nil
	}
	timer := k.o.Clock.NewTimer(time.Duration(t.Latency))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // also if both happened before this goroutine ran
		return t, fmt.Errorf("%w: no answer in time: %w", ErrUnreachable, ctx.Err())
	}
	return t, nil
}

// ring is that of a key; nil if there is no such key.
func (k *KMS) ring(key string) *keyring.Ring {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.rings[key]
}

// ensure is the ring of key, with a first KEK.
func (k *KMS) ensure(key string) (*keyring.Ring, error) {
	if ring := k.ring(key); ring != nil {
		return ring, nil
	}
	k.change.Lock()
	defer k.change.Unlock()
	switch ring := k.rings[key]; { // only changed under k.change
	case ring != nil:
		return ring, nil
	case !keyName.MatchString(key):
		return nil, keyring.Refuse(keyring.CodeInvalid, "key name %.80q: expected letters, digits, dots, dashes and underscores, at most 63", key)
	case len(k.rings) >= MaxKeys:
		return nil, keyring.Refuse(keyring.CodeInvalid, "there are %d keys already, no more are allowed", MaxKeys)
	}
	ring, kek, err := k.create(key)
	if err != nil {
		return nil, fmt.Errorf("create key %s: %w", key, err)
	}
	err = k.save()
	k.record(Operation{Op: "create", Key: key, KEKID: kek.ID, Version: kek.Version}, err)
	return ring, err
}

// create puts a ring with a first KEK in the place of a key. The caller holds k.change.
func (k *KMS) create(key string) (*keyring.Ring, keyring.KEK, error) {
	ring := keyring.New(rand.Reader)
	kek, err := ring.Rotate(k.o.Clock.Now())
	if err == nil {
		k.mu.Lock()
		k.rings[key] = ring
		k.mu.Unlock()
	}
	return ring, kek, err
}
