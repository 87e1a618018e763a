package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
)

// roundTrip is one Encrypt and one Decrypt, or several. It has its own random numbers, so that callers can run at the same time.
type roundTrip struct {
	random
	plaintext []byte
}

func roundTrips(p *Plugin, n int) []roundTrip {
	trips := make([]roundTrip, n)
	for i := range trips {
		trips[i] = roundTrip{random{rand.New(rand.NewPCG(p.rand.Uint64(), p.rand.Uint64()))}, p.Bytes(SeedBytes)}
	}
	return trips
}

func (t roundTrip) encrypt(ctx context.Context, client kmsapi.KeyManagementServiceClient, options ...grpc.CallOption) (*kmsapi.EncryptResponse, error) {
	return client.Encrypt(ctx, &kmsapi.EncryptRequest{Plaintext: t.plaintext, Uid: t.UID()}, options...)
}

// run encrypts and decrypts. It reports whether the plaintext came back.
func (t roundTrip) run(ctx context.Context, client kmsapi.KeyManagementServiceClient) (same bool, err error) {
	sealed, err := t.encrypt(ctx, client)
	if err != nil {
		return false, fmt.Errorf("encrypt: %w", err)
	}
	back, err := client.Decrypt(ctx, &kmsapi.DecryptRequest{Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Annotations: sealed.Annotations, Uid: t.UID()})
	if err != nil {
		return false, fmt.Errorf("decrypt: %w", err)
	}
	return string(back.Plaintext) == string(t.plaintext), nil
}

// together runs n callers at the same time and waits for all.
func together(n int, call func(caller int)) {
	start := make(chan struct{})
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			<-start
			call(i)
		})
	}
	close(start)
	callers.Wait()
}

// meanwhile is together in the background. The caller calls wait.
func meanwhile(n int, call func(caller int)) (wait func()) {
	var callers sync.WaitGroup
	callers.Go(func() { together(n, call) })
	return callers.Wait
}

// errOther is a Decrypt that returned something else than was encrypted.
var errOther = errors.New("decrypt: another plaintext")

// tally counts what came of the round trips of several callers.
type tally struct {
	mu                         sync.Mutex
	right, wrong, late, failed int
	first, lastLate            error // of wrong and failed ones; of late ones
}

// add runs a round trip and counts it.
func (t *tally) add(ctx context.Context, p *Plugin, trip roundTrip) {
	same, err := trip.run(ctx, p.Client())
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case late(err):
		t.late++
		t.lastLate = err
	case err != nil:
		t.failed++
		t.first = cmp.Or(t.first, err)
	case same:
		t.right++
	default:
		t.wrong++
		t.first = cmp.Or(t.first, errOther)
	}
}

// err is an error of one of the round trips, if any.
func (t *tally) err() error { return cmp.Or(t.first, t.lastLate) }

// samples is how many round trips at most show how fast a plugin is.
const samples = 10

// capacity is how many round trips a plugin makes within a time if it makes one after another: at least 1 and at most most. Checks with several
// callers do not ask more of it, so that a slow plugin passes.
func capacity(ctx context.Context, p *Plugin, most int, within time.Duration) (int, error) {
	one, first := within, time.Now()
	for _, trip := range roundTrips(p, samples) {
		if time.Since(first) > within/samples {
			break
		}
		began := time.Now()
		call, cancel := context.WithTimeout(ctx, 2*p.timing.Call)
		_, err := trip.run(call, p.Client())
		cancel()
		if err != nil {
			return 0, found("Encrypt and Decrypt by one caller", err, "a ciphertext, and the plaintext from it")
		}
		one = min(one, max(time.Since(began), time.Microsecond))
	}
	return max(1, min(most, int(within/one))), nil
}

// late reports whether a call ended by its deadline.
func late(err error) bool { return status.Code(err) == codes.DeadlineExceeded }
