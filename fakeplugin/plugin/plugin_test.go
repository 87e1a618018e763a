package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kmsharness/kmsharness/fakeplugin/keyring"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

type world struct {
	clock *testclock.FakeClock
	kms   *remotekms.KMS
	*Service
}

func newWorld(t testing.TB, lag time.Duration) world {
	t.Helper()
	clock := testclock.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	kms, err := remotekms.New(remotekms.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Name: "cp-1/1", Key: "key-1", Service: kms, Clock: clock, NoticeLag: lag})
	return world{clock, kms, &Service{Plugin: p}}
}

func (w world) poll(t testing.TB) {
	t.Helper()
	if err := w.Poll(ctx); err != nil {
		t.Fatal(err)
	}
}

func (w world) status(t testing.TB) *kmsapi.StatusResponse {
	t.Helper()
	resp, err := w.Status(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (w world) encrypt(t testing.TB) *kmsapi.EncryptResponse {
	t.Helper()
	resp, err := w.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "u", Plaintext: []byte("seed")})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (w world) decrypts(enc *kmsapi.EncryptResponse) error {
	_, err := w.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: "u", KeyId: enc.KeyId, Ciphertext: enc.Ciphertext, Annotations: enc.Annotations})
	return err
}

func TestRotationIsNoticedAfterTheLag(t *testing.T) {
	w := newWorld(t, time.Minute)
	w.poll(t)
	old := w.encrypt(t)
	if s := w.status(t); s.Healthz != Healthy || s.Version != Version || s.KeyId != old.KeyId {
		t.Fatalf("status %v after the first poll", s)
	}
	if _, err := w.Rotate(ctx, 0); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after   time.Duration
		noticed bool
	}{{time.Second, false}, {59 * time.Second, false}, {2 * time.Second, true}} {
		w.clock.Step(step.after)
		w.poll(t)
		if got := w.status(t).KeyId != old.KeyId; got != step.noticed {
			t.Errorf("another %v: noticed %t", step.after, got)
		}
		if enc := w.encrypt(t); enc.KeyId != w.status(t).KeyId || w.decrypts(enc) != nil {
			t.Errorf("Encrypt says %s, Status %s", enc.KeyId, w.status(t).KeyId)
		}
	}
	if err := w.decrypts(old); err != nil {
		t.Errorf("a ciphertext from before the rotation: %v", err)
	}
	if err := w.decrypts(&kmsapi.EncryptResponse{KeyId: "falsified", Ciphertext: old.Ciphertext}); err != nil {
		t.Errorf("with a false key_id: %v", err)
	}
}

func TestNoticeNow(t *testing.T) {
	w := newWorld(t, time.Hour)
	w.poll(t)
	kek, err := w.Rotate(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if w.poll(t); w.status(t).KeyId == kek.ID {
		t.Error("noticed before the lag")
	}
	if err := w.Notice(ctx); err != nil || w.status(t).KeyId != kek.ID {
		t.Errorf("told to notice: %v, %v", w.status(t), err)
	}
	if w.KeyID(w.View().KEK(2)) != kek.ID || w.KeyID(w.View().KEK(3)) != "" {
		t.Errorf("ids by version: %q, %q", w.KeyID(w.View().KEK(2)), w.KeyID(w.View().KEK(3)))
	}
}

func TestUnreachableKMS(t *testing.T) {
	w := newWorld(t, 0)
	if _, err := w.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "u"}); status.Code(err) != codes.Unavailable {
		t.Errorf("Encrypt before the first contact: %v", err)
	}
	w.poll(t)
	enc := w.encrypt(t)
	if err := w.kms.SetRule(remotekms.Rule{Caller: "cp-1/*", CutOff: remotekms.CutRefuse}); err != nil {
		t.Fatal(err)
	}
	_ = w.Poll(ctx)
	if s := w.status(t); !strings.Contains(s.Healthz, "remote KMS unreachable") || s.KeyId != enc.KeyId {
		t.Errorf("status %v", s)
	}
	if err := w.decrypts(enc); status.Code(err) != codes.Unavailable {
		t.Errorf("Decrypt: %v", err)
	}
	if err := w.kms.DeleteRule("cp-1/*"); err != nil {
		t.Fatal(err)
	}
	if w.poll(t); w.status(t).Healthz != Healthy || w.decrypts(enc) != nil {
		t.Errorf("back again: %v", w.status(t))
	}
}

func TestCodes(t *testing.T) {
	for name, c := range map[string]struct {
		state  keyring.State
		denied []keyring.Operation
		want   codes.Code
	}{
		"disabled": {keyring.Disabled, nil, codes.FailedPrecondition},
		"deleted":  {keyring.Deleted, nil, codes.NotFound},
		"denied":   {keyring.Enabled, []keyring.Operation{keyring.Decrypt}, codes.PermissionDenied},
	} {
		w := newWorld(t, 0)
		w.poll(t)
		enc := w.encrypt(t)
		if _, err := w.kms.SetState("key-1", 1, c.state, c.denied); err != nil {
			t.Fatal(err)
		}
		if err := w.decrypts(enc); status.Code(err) != c.want {
			t.Errorf("%s: Decrypt %v, want %s", name, err, c.want)
		}
		if w.poll(t); w.status(t).Healthz == Healthy {
			t.Errorf("%s: Status says ok", name)
		}
	}
}

func TestBadRequests(t *testing.T) {
	w := newWorld(t, 0)
	w.poll(t)
	enc := w.encrypt(t)
	if _, err := w.Encrypt(ctx, &kmsapi.EncryptRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without uid: %v", err)
	}
	for name, c := range map[string]struct {
		req  *kmsapi.DecryptRequest
		want codes.Code
	}{
		"no uid":              {&kmsapi.DecryptRequest{KeyId: enc.KeyId, Ciphertext: enc.Ciphertext}, codes.InvalidArgument},
		"a broken ciphertext": {&kmsapi.DecryptRequest{Uid: "u", KeyId: enc.KeyId, Ciphertext: enc.Ciphertext[:len(enc.Ciphertext)-1]}, codes.InvalidArgument},
	} {
		if _, err := w.Decrypt(ctx, c.req); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestRunPollsUntilStopped(t *testing.T) {
	kms, err := remotekms.New(remotekms.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Name: "cp-1/1", Key: "key-1", Service: kms, Poll: time.Millisecond})
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { p.Run(running); close(done) }()
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for p.View().Problem != "" {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never healthy: %+v", p.View())
		}
	}
	stop()
	<-done
}
