package upstream_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/fakeplugin/upstream"
	"github.com/kmsharness/kmsharness/internal/host"
)

const deadline = 10 * time.Second

// real is the plugin behind: what it was asked, and what it answers.
type real struct {
	kmsapi.UnimplementedKeyManagementServiceServer

	mu       sync.Mutex
	asked    []proto.Message
	metadata metadata.MD
	status   *kmsapi.StatusResponse
	encrypt  *kmsapi.EncryptResponse
	err      error
	hang     bool
	hanging  chan struct{} // receives when a call hangs
	ended    chan error    // receives why a call that hung has ended
}

func (r *real) answer(ctx context.Context, req proto.Message) error {
	r.mu.Lock()
	r.asked = append(r.asked, proto.Clone(req))
	r.metadata, _ = metadata.FromIncomingContext(ctx)
	hang, err := r.hang, r.err
	r.mu.Unlock()
	if hang {
		r.hanging <- struct{}{}
		<-ctx.Done()
		r.ended <- ctx.Err()
		return ctx.Err()
	}
	return err
}

func (r *real) Status(ctx context.Context, req *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return r.status, r.answer(ctx, req)
}

func (r *real) Encrypt(ctx context.Context, req *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	return r.encrypt, r.answer(ctx, req)
}

func (r *real) Decrypt(ctx context.Context, req *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	return &kmsapi.DecryptResponse{Plaintext: []byte("plain")}, r.answer(ctx, req)
}

func (r *real) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// world is a plugin, the server in front of it, and a client of that one.
type world struct {
	*WithT
	t      *testing.T
	real   *real
	behind endpoint.Endpoint
	plugin *upstream.Plugin
	server *server.Server
	calls  *journal.Log[journal.Call]
	client kmsapi.KeyManagementServiceClient
	stop   func() // of the plugin behind
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms")
	w := &world{WithT: NewWithT(t), t: t}
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w.real = &real{status: &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "key-a"}, hanging: make(chan struct{}, 10), ended: make(chan error, 10)}
	w.behind = endpoint.Endpoint{Network: "unix", Address: filepath.Join(dir, "real.sock")}
	w.plugin = upstream.New(host.Host{}, w.behind)
	w.calls = journal.New[journal.Call](journal.DefaultCapacity, nil)
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(dir, "kms-1.sock")}
	w.server = server.New(server.Options{Listen: at, Node: "cp-1", KeyID: "1", Plugin: w.plugin, Journal: w.calls})
	w.Expect(w.server.Start()).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	conn, err := grpc.NewClient(at.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	w.client = kmsapi.NewKeyManagementServiceClient(conn)
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// start serves the plugin behind.
func (w *world) start() {
	l, err := net.Listen("unix", w.behind.Address)
	w.Expect(err).NotTo(HaveOccurred())
	s := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(s, w.real)
	done := make(chan struct{})
	go func() { _ = s.Serve(l); close(done) }()
	var once sync.Once
	w.stop = func() { once.Do(func() { s.Stop(); <-done }) }
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), deadline)
	w.t.Cleanup(cancel)
	return ctx
}

// last is the last call in the journal; the zero value if there is none yet: a caller may have its answer before the journal has the call.
func (w *world) last() journal.Call {
	all, _ := w.calls.After(0, 1000)
	if len(all) == 0 {
		return journal.Call{}
	}
	return all[len(all)-1]
}

// withUnknown is m with a field that this version of the API does not have.
func withUnknown[M proto.Message](m M) M {
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "of a later version"))
	return m
}

func TestEverythingPassesUnchanged(t *testing.T) {
	w := newWorld(t)
	w.real.encrypt = withUnknown(&kmsapi.EncryptResponse{Ciphertext: []byte{0, 1, 255}, KeyId: "key-b", Annotations: map[string][]byte{"a.example.com": {0, 255}, "b.example.com": nil}})
	w.real.status = withUnknown(w.real.status)
	encrypt := withUnknown(&kmsapi.EncryptRequest{Plaintext: []byte{1, 0, 2}, Uid: "uid-1"})
	decrypt := withUnknown(&kmsapi.DecryptRequest{Ciphertext: []byte{9}, Uid: "uid-2", KeyId: "key-z", Annotations: map[string][]byte{"a.example.com": {7}}})
	ctx := metadata.AppendToOutgoingContext(w.context(), "traceparent", "00-1")

	gotStatus, err := w.client.Status(ctx, &kmsapi.StatusRequest{})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(proto.Equal(gotStatus, w.real.status)).To(BeTrue(), "%v", gotStatus)
	got, err := w.client.Encrypt(ctx, encrypt)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(proto.Equal(got, w.real.encrypt)).To(BeTrue(), "%v", got)
	_, err = w.client.Decrypt(ctx, decrypt)
	w.Expect(err).NotTo(HaveOccurred())

	w.Expect(w.real.asked).To(HaveLen(3))
	w.Expect(proto.Equal(w.real.asked[1], encrypt)).To(BeTrue(), "%v", w.real.asked[1])
	w.Expect(proto.Equal(w.real.asked[2], decrypt)).To(BeTrue(), "%v", w.real.asked[2])
	w.Expect(w.real.metadata).To(HaveKeyWithValue("traceparent", []string{"00-1"}))
	w.Expect(w.real.metadata).To(HaveKeyWithValue(":authority", []string{"localhost"}))
	w.Expect(w.last()).To(And(HaveField("UID", "uid-2"), HaveField("RequestKEKID", "key-z"), HaveField("Code", "OK")))
	w.Expect(w.server.State()).To(And(HaveField("KEKID", "key-a"), HaveField("Upstream", w.behind.String())))
}

func TestErrorsPassUnchanged(t *testing.T) {
	w := newWorld(t)
	for _, want := range []*status.Status{status.New(codes.FailedPrecondition, "key disabled"), status.New(codes.Unavailable, "HSM is away"), status.New(codes.Unknown, "")} {
		w.real.set(func() { w.real.err = want.Err() })
		_, err := w.client.Status(w.context(), &kmsapi.StatusRequest{})
		w.Expect(status.Code(err)).To(Equal(want.Code()))
		w.Expect(status.Convert(err).Message()).To(Equal(want.Message()))
		w.Expect(w.last()).To(And(HaveField("Code", want.Code().String()), HaveField("Detail", want.Message()), HaveField("Outcome", journal.Failed)))
	}
	w.Expect(w.calls.Last()).To(BeEquivalentTo(3))
}

func TestCancellationPasses(t *testing.T) {
	w := newWorld(t)
	w.real.set(func() { w.real.hang = true })
	ctx, cancel := context.WithCancel(w.context())
	failed := make(chan error, 1)
	go func() {
		_, err := w.client.Status(ctx, &kmsapi.StatusRequest{})
		failed <- err
	}()
	<-w.real.hanging
	cancel()
	w.Expect(status.Code(<-failed)).To(Equal(codes.Canceled))
	w.Expect(<-w.real.ended).To(MatchError(context.Canceled))
}

func TestDeadlinePasses(t *testing.T) {
	w := newWorld(t)
	w.real.set(func() { w.real.hang = true })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := w.client.Status(ctx, &kmsapi.StatusRequest{})
	w.Expect(status.Code(err)).To(Equal(codes.DeadlineExceeded))
	w.Expect(<-w.real.ended).To(Or(MatchError(context.DeadlineExceeded), MatchError(context.Canceled)))
}

// The client of a plugin that does not run fails as without the server in between, or waits if it says so, and recovers with the plugin.
func TestPluginThatDoesNotRun(t *testing.T) {
	w := newWorld(t)
	w.real.set(func() { w.real.hang = true })
	failed := make(chan error, 1)
	go func() {
		_, err := w.client.Encrypt(w.context(), &kmsapi.EncryptRequest{Uid: "u"})
		failed <- err
	}()
	<-w.real.hanging
	w.stop()
	err := <-failed
	w.Expect(status.Code(err)).To(Equal(codes.Unavailable))
	w.Expect(err.Error()).NotTo(ContainSubstring(server.ErrGone.Error()))
	w.Eventually(func() journal.Outcome { return w.last().Outcome }).WithTimeout(deadline).Should(Equal(journal.Reset))

	_, err = w.client.Status(w.context(), &kmsapi.StatusRequest{})
	w.Expect(status.Code(err)).To(Equal(codes.Unavailable))
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = w.client.Status(short, &kmsapi.StatusRequest{}, grpc.WaitForReady(true))
	w.Expect(status.Code(err)).To(Equal(codes.DeadlineExceeded))
	w.Expect(w.calls.Last()).To(BeEquivalentTo(1), "a call that never arrives is not in the journal")

	w.real.set(func() { w.real.hang = false })
	_ = os.Remove(w.behind.Address)
	w.start()
	_, err = w.client.Status(w.context(), &kmsapi.StatusRequest{}, grpc.WaitForReady(true))
	w.Expect(err).NotTo(HaveOccurred())
}

func TestCallsAreConcurrent(t *testing.T) {
	w := newWorld(t)
	w.real.set(func() { w.real.hang = true })
	ctx, cancel := context.WithCancel(w.context())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { _, _ = w.client.Status(ctx, &kmsapi.StatusRequest{}) })
	}
	for range 10 {
		<-w.real.hanging
	}
	cancel()
	all.Wait()
	for range 10 {
		<-w.real.ended
	}
}

func TestFaultsChangeWhatPasses(t *testing.T) {
	w := newWorld(t)
	w.real.encrypt = &kmsapi.EncryptResponse{Ciphertext: []byte("c"), KeyId: "key-a"}
	inject := func(name string, params map[string]any) {
		t.Helper()
		f, err := fault.Catalogue{}.Parse(name, params)
		w.Expect(err).NotTo(HaveOccurred())
		_, err = w.server.Inject(f)
		w.Expect(err).NotTo(HaveOccurred())
	}
	inject("healthz", map[string]any{"text": "no session"})
	got, err := w.client.Status(w.context(), &kmsapi.StatusRequest{})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(got.Healthz).To(Equal("no session"))
	inject("grpc-status", map[string]any{"method": "Status", "code": "Internal", "text": "broken"})
	_, err = w.client.Status(w.context(), &kmsapi.StatusRequest{})
	w.Expect(status.Convert(err).Message()).To(Equal("broken"))
	inject("key-id-mismatch", map[string]any{"key-id": "false"})
	encrypted, err := w.client.Encrypt(w.context(), &kmsapi.EncryptRequest{Uid: "u"})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(encrypted.KeyId).To(Equal("false"))
	_, err = w.client.Decrypt(w.context(), &kmsapi.DecryptRequest{Uid: "u", Ciphertext: encrypted.Ciphertext, KeyId: encrypted.KeyId})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.last().RequestKEKID).To(Equal("false"))
	w.Expect(w.real.asked[len(w.real.asked)-1].(*kmsapi.DecryptRequest).KeyId).To(Equal("key-a"), "the plugin gets its own key_id back")
	inject("socket-removed", nil)
	_, err = w.client.Status(w.context(), &kmsapi.StatusRequest{})
	w.Expect(status.Code(err)).To(Equal(codes.Unavailable))
	w.Expect(w.server.SetProfile(nil)).To(Succeed())
}

// The key_ids that were seen are versions of the KEK, however many there are.
func TestKeyIDsAreVersions(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"key-a", "key-b", "key-a", ""} {
		w.real.set(func() { w.real.status = &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: id} })
		w.Expect(w.plugin.Notice(w.context())).To(Succeed())
	}
	w.Expect(w.plugin.View().Noticed.ID).To(Equal("key-a"))
	w.Expect(w.plugin.View().KEK(2).ID).To(Equal("key-b"))
	w.Expect(w.plugin.View().KEK(3).ID).To(BeEmpty())
	w.stop()
	err := w.plugin.Notice(w.context())
	w.Expect(errors.Is(err, os.ErrNotExist) || err != nil).To(BeTrue())
}
