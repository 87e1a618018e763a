package kmsplugin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance/plugin"
)

func lifecycleMutants() []Mutant {
	return []Mutant{
		{Name: "socket-left-behind", Mistake: "The socket file is removed neither at the end nor at the start.", Caught: "KMS2-LIFECYCLE-RESTART-AFTER-SIGTERM", Change: leavesSocket},
		{Name: "stale-socket-kept", Mistake: "The socket file is removed at the end only.", Caught: "KMS2-LIFECYCLE-RESTART-AFTER-SIGKILL", Change: keepsStaleSocket},
		{Name: "listens-too-early", Mistake: "Calls are accepted half a second before they can be served.", Caught: "KMS2-LIFECYCLE-WAITING-CALL",
			Change: func(r *Reference) {
				ready := time.Now().Add(500 * time.Millisecond)
				r.Encrypt.refuse(status.Error(codes.FailedPrecondition, "the plugin is starting"), func(*kmsapi.EncryptRequest) bool { return time.Now().Before(ready) })
			}},
		{Name: "starts-counted", Mistake: "The sixth start in a row without an Encrypt fails.", Caught: "KMS2-LIFECYCLE-TEN-RESTARTS", Change: countsStarts},
		{Name: "sigterm-ignored", Mistake: "SIGTERM has no effect.", Caught: "KMS2-LIFECYCLE-STOPS",
			Change: func(r *Reference) { r.Stop = func(*grpc.Server, net.Listener) { select {} } }},
		{Name: "stop-waits-for-clients", Mistake: "A stop waits for the HTTP/2 preface of each connection, by default for two minutes.", Caught: "KMS2-LIFECYCLE-STOPS-WITH-IDLE-CONNECTION",
			Change: func(r *Reference) { r.Options = nil }},
		{Name: "calls-hang-at-stop", Mistake: "After SIGTERM the calls in flight are neither answered nor ended for some seconds.", Caught: "KMS2-LIFECYCLE-CALL-AT-STOP", Change: hangsAtStop},
		{Name: "key-id-of-process", Mistake: "The key_id has the id of the process.", Caught: "KMS2-LIFECYCLE-KEY-ID-AFTER-RESTART",
			Change: func(r *Reference) { r.suffixKeyID(func(context.Context) string { return fmt.Sprint(os.Getpid()) }) }},
		{Name: "key-in-memory", Mistake: "The local KEK is in memory only.", Caught: "KMS2-LIFECYCLE-DATA-AFTER-SIGTERM", Change: func(r *Reference) { r.localKey(random(keyBytes)) }},
		{Name: "key-saved-at-stop", Mistake: "The local KEK is written to a file when the plugin stops.", Caught: "KMS2-LIFECYCLE-DATA-AFTER-SIGKILL", Change: savesKeyAtStop},
		{Name: "lock-left-behind", Mistake: "A kill in the middle of an Encrypt leaves a lock that the next process respects.", Caught: "KMS2-LIFECYCLE-KILLED-IN-MID-CALL", Change: leavesLock},
		{Name: "socket-unlinked-late", Mistake: "A second after SIGTERM the path of the socket is removed, whatever serves there.", Caught: "KMS2-LIFECYCLE-HAND-OVER",
			Change: func(r *Reference) {
				r.Stop = func(s *grpc.Server, _ net.Listener) {
					s.Stop()
					waitFor(context.Background(), time.Second)
					_ = os.Remove(r.At.Address)
				}
			}},
		{Name: "failed-start-unlinks", Mistake: "A start removes the socket file before it reads its keys, and ends if it cannot.", Caught: "KMS2-LIFECYCLE-FAILED-START", Change: unlinksFirst},
		{Name: "ends-at-start-without-kms", Mistake: "A start while the KMS fails ends.", Caught: "KMS2-LIFECYCLE-START-WITHOUT-KMS",
			Change: func(r *Reference) {
				listen := r.Listen
				r.Listen = func() (net.Listener, error) { return listenIf(r.KMS.Problem() == nil, listen) }
			}},
		{Name: "ok-until-asked", Mistake: "healthz is ok for half a second after the start, before the KMS was asked.", Caught: "KMS2-LIFECYCLE-START-WITHOUT-KMS-NOT-OK",
			Change: sinceStart(func(resp *kmsapi.StatusResponse) { resp.Healthz = "ok" })},
		{Name: "provisional-key-id", Mistake: "The key_id is provisional after a start while the KMS fails.", Caught: "KMS2-LIFECYCLE-START-WITHOUT-KMS-KEY-ID",
			Change: sinceStart(func(resp *kmsapi.StatusResponse) { resp.KeyId = "pending" })},
		{Name: "key-id-of-version", Mistake: "The key_id is the number of the version, and each instance has keys of its own.", Caught: "KMS2-DECRYPT-OTHER-INSTANCE",
			Change: func(r *Reference) {
				renameKeyID(func(id string) string {
					keys, _ := r.KMS.Keys()
					return fmt.Sprint("version-", 1+slices.IndexFunc(keys, func(key []byte) bool { return KeyID(key) == id }))
				})(r)
			}},
		{Name: "key-id-of-address", Mistake: "The key_id has a hash of the address of the KMS.", Caught: "KMS2-LIFECYCLE-KEY-ID-OTHER-ADDRESS",
			Change: func(r *Reference) {
				r.suffixKeyID(func(context.Context) string { return KeyID([]byte(r.Address)) })
			}},
	}
}

// unlinksFirst does without the check that another process serves.
func unlinksFirst(r *Reference) {
	listen := r.Listen
	r.Listen = func() (net.Listener, error) {
		if err := os.Remove(r.At.Address); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		_, err := r.KMS.Keys()
		return listenIf(err == nil, listen)
	}
}

func listenIf(ready bool, listen func() (net.Listener, error)) (net.Listener, error) {
	if !ready {
		return nil, errors.New("the KMS has no key")
	}
	return listen()
}

// sinceStart changes the answers of Status while the KMS fails, for half a second after a start.
func sinceStart(change func(*kmsapi.StatusResponse)) func(*Reference) {
	start := time.Now()
	return statusIn(plugin.ModeFail, func(_ context.Context, resp *kmsapi.StatusResponse) {
		if time.Since(start) < 500*time.Millisecond {
			change(resp)
		}
	})
}

func leavesSocket(r *Reference) {
	r.Listen = func() (net.Listener, error) {
		l, err := net.Listen(r.At.Network, r.At.Address)
		if u, ok := l.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false)
		}
		return l, err
	}
	r.Stop = func(s *grpc.Server, _ net.Listener) {
		s.Stop()
		os.Exit(0) // without the removal
	}
}

func keepsStaleSocket(r *Reference) {
	r.Listen = func() (net.Listener, error) { return net.Listen(r.At.Network, r.At.Address) }
}

func countsStarts(r *Reference) {
	file, listen := filepath.Join(r.KMS.dir, "starts"), r.Listen
	r.Listen = func() (net.Listener, error) {
		text, _ := os.ReadFile(file)
		starts, _ := strconv.Atoi(string(text)) // 0 if there is no file
		if starts >= 6 {
			return nil, errors.New("started too often")
		}
		if err := os.WriteFile(file, []byte(strconv.Itoa(starts+1)), 0o600); err != nil {
			return nil, err
		}
		return listen()
	}
	r.Encrypt.before(func(context.Context, *kmsapi.EncryptRequest) error {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func hangsAtStop(r *Reference) {
	var stopping atomic.Bool
	r.Encrypt.before(func(ctx context.Context, _ *kmsapi.EncryptRequest) error {
		waitFor(ctx, longWait)
		if stopping.Load() {
			<-ctx.Done()
		}
		return nil
	})
	r.Stop = func(s *grpc.Server, _ net.Listener) {
		stopping.Store(true)
		waitFor(context.Background(), 2500*time.Millisecond)
		s.Stop()
	}
}

func savesKeyAtStop(r *Reference) {
	file, stop := filepath.Join(r.KMS.dir, "local-key"), r.Stop
	key, err := os.ReadFile(file)
	if err != nil || os.Remove(file) != nil {
		key = random(keyBytes)
	}
	r.localKey(key)
	r.Stop = func(s *grpc.Server, l net.Listener) {
		if err := os.WriteFile(file, key, 0o600); err != nil {
			r.Log.Error("save the local KEK", "err", err)
		}
		stop(s, l)
	}
}

func leavesLock(r *Reference) {
	lock := filepath.Join(r.KMS.dir, "lock")
	locked := os.Remove(lock) == nil
	var now atomic.Int64
	r.Encrypt.around(func(ctx context.Context, q *kmsapi.EncryptRequest, next encryptMethod) (*kmsapi.EncryptResponse, error) {
		now.Add(1)
		defer func() {
			if now.Add(-1) == 0 {
				_ = os.Remove(lock)
			}
		}()
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			return nil, err
		}
		waitFor(ctx, longWait/4)
		return next(ctx, q)
	})
	r.Encrypt.refuse(status.Error(codes.Unavailable, "another process has the lock"), func(*kmsapi.EncryptRequest) bool { return locked })
}

// localKey makes the plugin encrypt the ciphertexts once more, with a key of its own. Their sizes stay, and another key makes them not authentic.
func (r *Reference) localKey(key []byte) {
	again := func(b []byte) []byte {
		out := make([]byte, len(b))
		cipher.NewCTR(block(key), make([]byte, aes.BlockSize)).XORKeyStream(out, b)
		return out
	}
	afterEncrypt(func(_ *kmsapi.EncryptRequest, resp *kmsapi.EncryptResponse) { resp.Ciphertext = again(resp.Ciphertext) })(r)
	beforeDecrypt(func(q *kmsapi.DecryptRequest) { q.Ciphertext = again(q.Ciphertext) })(r)
}
