package kmsplugin

import (
	"context"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	kmsapi "k8s.io/kms/apis/v2"
)

func loadMutants() []Mutant {
	return slices.Concat(concurrencyMutants(), endedCallMutants(), leakMutants())
}

// concurrencyMutants are wrong when there are many calls.
func concurrencyMutants() []Mutant {
	return []Mutant{
		{Name: "polls-limited", Mistake: "More than 280 calls of Status in two seconds are refused.", Caught: "KMS2-LOAD-STATUS-POLLED",
			Change: func(r *Reference) { limit(&r.Status, &rate{calls: 280, per: 2 * time.Second}) }},
		{Name: "decrypts-limited", Mistake: "More than 150 calls of Decrypt in a second are refused.", Caught: "KMS2-LOAD-SEQUENTIAL",
			Change: func(r *Reference) { limit(&r.Decrypt, &rate{calls: 150, per: time.Second}) }},
		{Name: "log-in-for-each-call", Mistake: "Each Encrypt and Decrypt logs in to the KMS.", Caught: "KMS2-LOAD-LOG-INS",
			Change: func(r *Reference) {
				r.Encrypt.before(func(context.Context, *kmsapi.EncryptRequest) error { return r.KMS.LogIn() })
				r.Decrypt.before(func(context.Context, *kmsapi.DecryptRequest) error { return r.KMS.LogIn() })
			}},
		{Name: "plaintexts-mixed-up", Mistake: "Decrypt returns the plaintext of the call that came last.", Caught: "KMS2-LOAD-NO-MIX-UP", Change: mixesUp},
		{Name: "four-encrypts-at-once", Mistake: "A fifth Encrypt at once is refused.", Caught: "KMS2-LOAD-CONCURRENT-10", Change: atMost(4)},
		{Name: "fifty-encrypts-at-once", Mistake: "More than 50 calls of Encrypt at once are refused.", Caught: "KMS2-LOAD-CONCURRENT-100", Change: atMost(50)},
		{Name: "150-encrypts-at-once", Mistake: "More than 150 calls of Encrypt at once are refused.", Caught: "KMS2-LOAD-CONCURRENT-200", Change: atMost(150)},
		{Name: "key-id-races", Mistake: "Calls of Status at the same time see two caches of the key_id.", Caught: "KMS2-LOAD-KEY-ID-STEADY", Change: keyIDRaces},
		{Name: "status-waits-for-encrypts", Mistake: "Status waits until there has been no Encrypt for a while.", Caught: "KMS2-LOAD-STATUS-WITH-ENCRYPT", Change: statusWaitsForEncrypts},
		{Name: "one-writer", Mistake: "All connections are written one after another.", Caught: "KMS2-LOAD-SLOW-READER",
			Change: func(r *Reference) {
				var one sync.Mutex
				r.accepting(func(c net.Conn) net.Conn { return lockedWriter{c, &one} })
			}},
		{Name: "120-connections-in-all", Mistake: "After 120 connections no further one is accepted.", Caught: "KMS2-LOAD-CONNECTION-CHURN",
			Change: func(r *Reference) {
				left := make(slots, 120)
				r.accepting(func(c net.Conn) net.Conn {
					left <- struct{}{}
					return c
				})
			}},
		{Name: "64-connections-at-once", Mistake: "At most 64 connections are served at once.", Caught: "KMS2-LOAD-OPEN-CONNECTIONS",
			Change: func(r *Reference) { r.accepting(make(slots, 64).take) }},
	}
}

// rate counts calls in a period.
type rate struct {
	mu    sync.Mutex
	calls int
	per   time.Duration
	began time.Time
	made  int
}

// exceeded counts a call. It reports whether there were too many, and then begins a new period.
func (r *rate) exceeded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.began) > r.per {
		r.began, r.made = now, 0
	}
	if r.made++; r.made > r.calls {
		r.made = 0
		return true
	}
	return false
}

func limit[Q, R any](m *method[Q, R], most *rate) {
	m.refuse(status.Error(codes.ResourceExhausted, "too many calls"), func(*Q) bool { return most.exceeded() })
}

func mixesUp(r *Reference) {
	var shared atomic.Value
	r.Decrypt.after(func(ctx context.Context, _ *kmsapi.DecryptRequest, resp *kmsapi.DecryptResponse) {
		shared.Store(resp.Plaintext)
		waitFor(ctx, shortWait/3) // others come meanwhile
		resp.Plaintext, _ = shared.Load().([]byte)
	})
}

// atMost refuses Encrypt if more calls run. Calls that are not alone take long, so that they run at once.
func atMost(n int64) func(*Reference) {
	return func(r *Reference) {
		var now atomic.Int64
		r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
			running := now.Add(1)
			defer now.Add(-1)
			if running > n {
				return nil, status.Error(codes.ResourceExhausted, "too many calls of Encrypt at once")
			}
			if waitFor(ctx, shortWait/10); now.Load() > 1 {
				waitFor(ctx, 2*longWait)
			}
			return next(ctx, q)
		})
	}
}

func keyIDRaces(r *Reference) {
	var now, calls atomic.Int64
	r.Status.around(func(ctx context.Context, q *kmsapi.StatusRequest, next statusMethod) (*kmsapi.StatusResponse, error) {
		now.Add(1)
		defer now.Add(-1)
		waitFor(ctx, shortWait/10)
		resp, err := next(ctx, q)
		if err == nil && now.Load() > 1 && calls.Add(1)%2 == 0 {
			resp.KeyId = KeyID([]byte("an older KEK"))
		}
		return resp, err
	})
}

func statusWaitsForEncrypts(r *Reference) {
	var last atomic.Int64 // when an Encrypt ended
	r.Encrypt.ended(func(error) { last.Store(time.Now().UnixNano()) })
	r.Status.before(func(ctx context.Context, _ *kmsapi.StatusRequest) error {
		for time.Since(time.Unix(0, last.Load())) < longWait && ctx.Err() == nil {
			waitFor(ctx, shortWait)
		}
		return nil
	})
}

// lockedWriter writes while no other connection writes. Its buffer in the kernel is small.
type lockedWriter struct {
	net.Conn
	one *sync.Mutex
}

func (c lockedWriter) Write(b []byte) (int, error) {
	if u, ok := c.Conn.(*net.UnixConn); ok {
		_ = u.SetWriteBuffer(1) // the kernel takes its least size
	}
	c.one.Lock()
	defer c.one.Unlock()
	return c.Conn.Write(b)
}

// shortDeadline is the time that tells a call with a short deadline from one that is cancelled.
const shortDeadline = 100 * time.Millisecond

// endedCallMutants are wrong when the caller ends a call.
func endedCallMutants() []Mutant {
	return []Mutant{
		{Name: "cancel-breaks-session", Mistake: "After an Encrypt that was cancelled the next one fails.", Caught: "KMS2-LOAD-CANCELLED-CALLS",
			Change: poisoned(func(allowed time.Duration) bool { return allowed > shortDeadline })},
		{Name: "deadline-breaks-session", Mistake: "After an Encrypt whose short deadline passed the next one fails.", Caught: "KMS2-LOAD-SHORT-DEADLINES",
			Change: poisoned(func(allowed time.Duration) bool { return allowed <= shortDeadline })},
		{Name: "expired-deadline-crashes", Mistake: "A call whose deadline has passed ends the process.", Caught: "KMS2-LOAD-EXPIRED-DEADLINE",
			Change: func(r *Reference) {
				r.Options = append(r.Options, grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) {
					if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 0 {
						crash()
					}
					return ctx, nil
				}))
			}},
	}
}

// poisoned makes the next Encrypt fail after one that its caller ended, if by the time that it was allowed to take.
func poisoned(by func(allowed time.Duration) bool) func(*Reference) {
	return func(r *Reference) {
		var broken atomic.Bool
		r.Encrypt.before(func(ctx context.Context, _ *kmsapi.EncryptRequest) error {
			allowed := shortDeadline * 2 // a call without a deadline is not short
			if deadline, ok := ctx.Deadline(); ok {
				allowed = time.Until(deadline)
			}
			waitFor(ctx, shortWait)
			if ctx.Err() != nil && by(allowed) {
				broken.Store(true)
			} else if broken.CompareAndSwap(true, false) {
				return status.Error(codes.Internal, "the session is broken")
			}
			return nil
		})
	}
}

// leakedPerCall is the memory that a mutant keeps for each Status, in bytes.
const leakedPerCall = 8 << 10

// leakMutants keep what they should free.
func leakMutants() []Mutant {
	return []Mutant{
		{Name: "connections-leak", Mistake: "Connections are shut down and their descriptors are not closed.", Caught: "KMS2-LOAD-CONNECTIONS-FREED", Change: leaksConnections},
		{Name: "descriptors-leak", Mistake: "Each Encrypt opens a file and does not close it.", Caught: "KMS2-LOAD-DESCRIPTORS-STEADY",
			Change: func(r *Reference) {
				var files kept[*os.File]
				beforeEncrypt(func(*kmsapi.EncryptRequest) {
					if f, err := os.Open(os.DevNull); err == nil {
						files.add(f)
					}
				})(r)
			}},
		{Name: "threads-leak", Mistake: "Each Encrypt starts a thread that does not end.", Caught: "KMS2-LOAD-THREADS-STEADY",
			Change: beforeEncrypt(func(*kmsapi.EncryptRequest) {
				go func() {
					runtime.LockOSThread()
					select {}
				}()
			})},
		{Name: "memory-leaks", Mistake: "Each Status is kept.", Caught: "KMS2-LOAD-MEMORY-STEADY",
			Change: func(r *Reference) {
				var answers kept[[]byte]
				onStatus(func(int, *kmsapi.StatusResponse) {
					leaked := make([]byte, leakedPerCall)
					for i := 0; i < len(leaked); i += 1 << 10 {
						leaked[i] = 1
					}
					answers.add(leaked)
				})(r)
			}},
	}
}

// kept is what a mutant keeps.
type kept[V any] struct {
	mu  sync.Mutex
	all []V
}

func (k *kept[V]) add(v V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, v)
}

// take returns all and keeps none.
func (k *kept[V]) take() []V {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.all
	k.all = nil
	return all
}

func leaksConnections(r *Reference) {
	var conns kept[net.Conn] // the runtime closes descriptors that nobody knows
	r.accepting(func(c net.Conn) net.Conn {
		conns.add(c)
		return onClose{c, func() error {
			if u, ok := c.(*net.UnixConn); ok {
				_ = u.CloseRead()
				return u.CloseWrite()
			}
			return c.Close()
		}}
	})
}
