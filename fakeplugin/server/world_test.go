package server

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/utils/clock"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline of a call that is expected to be answered; patience of one that is expected to hang.
const (
	deadline = 5 * time.Second
	patience = 100 * time.Millisecond
)

// world is a plugin on a real socket, with an in-process KMS, and a real client.
type world struct {
	*WithT
	t      testing.TB
	server *Server
	plugin *plugin.Plugin
	kms    *remotekms.KMS
	at     endpoint.Endpoint
	client kmsapi.KeyManagementServiceClient

	mu    sync.Mutex
	exits []int
}

func newWorld(t testing.TB) *world {
	return newWorldAt(t, endpoint.Endpoint{Network: "unix", Address: filepath.Join(openDir(t), "kms-1.sock")})
}

// openDir is a directory that every user may enter, so that the mode of a socket in it decides.
func openDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func newWorldAt(t testing.TB, at endpoint.Endpoint, flags ...string) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, at: at}
	var err error
	w.kms, err = remotekms.New(remotekms.Options{})
	w.Expect(err).NotTo(HaveOccurred())
	w.plugin = plugin.New(plugin.Options{Name: "cp-1/1", Key: "key-1", Service: w.kms})
	w.Expect(w.plugin.Poll(t.Context())).To(Succeed())
	program := fault.NewProgram(clock.RealClock{}, 1)
	for _, flag := range flags {
		_, err := program.Inject(w.parse(flag))
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.server = New(Options{Listen: at, Node: "cp-1", KeyID: "1", Plugin: &plugin.Service{Plugin: w.plugin}, Program: program, Exit: w.exit})
	w.run()
	w.client = w.dial()
	return w
}

func (w *world) exit(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exits = append(w.exits, code)
}

func (w *world) exited() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int{}, w.exits...)
}

func (w *world) run() {
	w.t.Helper()
	w.Expect(w.server.Start()).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
}

// dial is a client as kube-apiserver makes one, except that it reconnects without a long back-off.
func (w *world) dial() kmsapi.KeyManagementServiceClient {
	w.t.Helper()
	target := "unix://" + w.at.Address
	if !w.at.IsFile() {
		target = "unix-abstract:" + w.at.Address[1:]
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: time.Millisecond, MaxDelay: 5 * time.Millisecond}, MinConnectTimeout: deadline}))
	w.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(func() { _ = conn.Close() })
	return kmsapi.NewKeyManagementServiceClient(conn)
}

func (w *world) parse(flag string) fault.Fault {
	w.t.Helper()
	f, err := fault.Catalogue{}.ParseFlag(flag)
	w.Expect(err).NotTo(HaveOccurred(), flag)
	return f
}

// inject returns the function that releases the fault.
func (w *world) inject(flag string) (release func()) {
	w.t.Helper()
	a, err := w.server.Inject(w.parse(flag))
	w.Expect(err).NotTo(HaveOccurred(), flag)
	return func() {
		w.t.Helper()
		_, err := w.server.Release(fault.ByID(a.ID))
		w.Expect(err).NotTo(HaveOccurred(), "release %s", flag)
	}
}

func (w *world) status(within time.Duration) (*kmsapi.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return w.client.Status(ctx, &kmsapi.StatusRequest{})
}

func (w *world) encrypt(within time.Duration) (*kmsapi.EncryptResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return w.client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "uid-e", Plaintext: []byte(seed)})
}

// seed has the 32 bytes of a DEK seed.
const seed = "0123456789abcdef0123456789abcdef"

func (w *world) decrypt(enc *kmsapi.EncryptResponse, within time.Duration) (*kmsapi.DecryptResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return w.client.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: "uid-d", Ciphertext: enc.GetCiphertext(), KeyId: enc.GetKeyId(), Annotations: enc.GetAnnotations()})
}

// healthy waits until a client gets good answers to all three methods, again and again through a new connection too.
func (w *world) healthy() {
	w.t.Helper()
	w.Eventually(func() error { return w.judge(w.client, deadline) }).WithTimeout(deadline).WithPolling(time.Millisecond).Should(Succeed())
	w.Expect(w.judge(w.dial(), deadline)).To(Succeed(), "through a new connection")
}

// last is the newest call of a method in the journal.
func (w *world) last(m fault.Method) journal.Call {
	calls, _ := w.server.o.Journal.After(0, journal.DefaultCapacity)
	for i := len(calls) - 1; i >= 0; i-- {
		if calls[i].Method == string(m) {
			return calls[i]
		}
	}
	return journal.Call{}
}
