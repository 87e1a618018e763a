package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsservice "k8s.io/kms/pkg/service"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
)

func TestHungCallsGoOnWhenReleased(t *testing.T) {
	w := newWorld(t)
	release := w.inject("hang:count=2")
	answered := make(chan error, 2)
	for range 2 {
		go func() { _, err := w.status(deadline); answered <- err }()
	}
	w.Eventually(func() int { return w.server.Faults()[0].Hits }).WithTimeout(deadline).Should(Equal(2))
	w.Expect(w.judge(w.client, deadline)).To(Succeed(), "the third call does not hang")
	w.Expect(answered).NotTo(Receive())
	release()
	for range 2 {
		w.Expect(<-answered).To(Succeed())
	}
}

func TestHangEndsWithItsTime(t *testing.T) {
	w := newWorld(t)
	w.inject("hang:for=50ms")
	began := time.Now()
	_, err := w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(time.Since(began)).To(BeNumerically(">=", 40*time.Millisecond))
}

func TestHangUntilDeadlineOutlivesItsRelease(t *testing.T) {
	w := newWorld(t)
	release := w.inject("hang:until=deadline")
	answered := make(chan error, 1)
	go func() { _, err := w.status(300 * time.Millisecond); answered <- err }()
	w.Eventually(func() int { return w.server.Faults()[0].Hits }).WithTimeout(deadline).Should(Equal(1))
	release()
	w.Expect(status.Code(<-answered)).To(Equal(codes.DeadlineExceeded))
}

func TestAbandonedCallIsJournaled(t *testing.T) {
	w := newWorld(t)
	w.inject("hang")
	began := time.Now()
	ctx, abandon := context.WithTimeout(context.Background(), deadline)
	defer abandon()
	answered := make(chan error, 1)
	go func() {
		_, err := w.client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "uid-e", Plaintext: []byte(seed)})
		answered <- err
	}()
	w.Eventually(func() int { return w.server.Faults()[0].Hits }).WithTimeout(deadline).Should(Equal(1))
	abandon()
	w.Expect(status.Code(<-answered)).To(Equal(codes.Canceled))
	w.Eventually(func() string { return w.last(fault.Encrypt).UID }).WithTimeout(deadline).Should(Equal("uid-e"))
	c := w.last(fault.Encrypt)
	w.Expect(c.Outcome).To(Equal(journal.Abandoned))
	w.Expect(c.Code).To(BeElementOf("DeadlineExceeded", "Canceled"))
	w.Expect(c.Began).To(BeTemporally(">=", began))
	w.Expect(c.LatencyMS).To(BeNumerically(">", 0))
}

func TestJournalTellsWhatWasAnswered(t *testing.T) {
	w := newWorld(t)
	_, err := w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	enc, err := w.encrypt(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.decrypt(enc, deadline)
	w.Expect(err).NotTo(HaveOccurred())
	s, e, d := w.last(fault.Status), w.last(fault.Encrypt), w.last(fault.Decrypt)
	w.Expect([]string{s.Node, s.KeyID, s.Healthz, s.Version, s.KEKID, s.Code}).To(Equal([]string{"cp-1", "1", "ok", "v2", enc.KeyId, "OK"}))
	w.Expect([]string{e.UID, e.KEKID, e.NoticedKEKID}).To(Equal([]string{"uid-e", enc.KeyId, enc.KeyId}))
	w.Expect([]string{d.UID, d.RequestKEKID}).To(Equal([]string{"uid-d", enc.KeyId}))
	w.Expect(s.Ended).NotTo(BeTemporally("<", s.Began))

	w.inject("hostile-text:kind=huge")
	_, err = w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	s = w.last(fault.Status)
	w.Expect(len(s.Healthz)).To(Equal(journal.MaxText))
	w.Expect(s.HealthzBytes).To(Equal(fault.HugeBytes))
}

func TestKeyIDReused(t *testing.T) {
	w := newWorld(t)
	first, err := w.encrypt(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.plugin.Rotate(t.Context(), 0)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.plugin.Poll(t.Context())).To(Succeed())
	release := w.inject("key-id-reused")
	second, err := w.encrypt(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	st, err := w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect([]string{second.KeyId, st.KeyId}).To(HaveEach(first.KeyId), "the id of the first KEK is used again")
	w.Expect(w.last(fault.Encrypt).NoticedKEKID).NotTo(Equal(first.KeyId), "for another KEK")
	_, err = w.decrypt(second, deadline)
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.decrypt(first, deadline)
	w.Expect(err).NotTo(HaveOccurred())
	release()
	st, err = w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(st.KeyId).NotTo(Equal(first.KeyId))
}

// A ciphertext that was made while a fault falsified its key_id is not lost.
func TestFalseKeyIDsStillDecrypt(t *testing.T) {
	for _, flag := range []string{"key-id-empty", "key-id-oversized", "key-id-flip-flop", "key-id-mismatch"} {
		w := newWorld(t)
		release := w.inject(flag)
		enc, err := w.encrypt(deadline)
		w.Expect(err).NotTo(HaveOccurred())
		release()
		dec, err := w.decrypt(enc, deadline)
		w.Expect(err).NotTo(HaveOccurred(), flag)
		w.Expect(string(dec.Plaintext)).To(Equal(seed))
	}
}

func TestFaultsCombine(t *testing.T) {
	w := newWorld(t)
	w.inject("delay:by=50ms,method=Status")
	w.inject("healthz:text=slow and sick")
	began := time.Now()
	st, err := w.status(deadline)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(st.Healthz).To(Equal("slow and sick"))
	w.Expect(time.Since(began)).To(BeNumerically(">=", 50*time.Millisecond))
	w.Expect(w.last(fault.Status).Faults).To(Equal([]string{"delay", "healthz"}))
	_, err = w.server.Release(fault.All)
	w.Expect(err).NotTo(HaveOccurred())
	w.healthy()
}

// As k8s.io/kms tests its own service (TestGRPCServiceConcurrentAccess).
func TestConcurrentUse(t *testing.T) {
	w := newWorld(t)
	failures := make(chan error, 100)
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			enc, err := w.encrypt(deadline)
			if err == nil {
				_, err = w.decrypt(enc, deadline)
			}
			failures <- err
		})
	}
	calls.Wait()
	close(failures)
	for err := range failures {
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// The judge of these tests finds nothing wrong with a plugin that is not ours, made of k8s.io/kms alone.
func TestJudgeAcceptsAnotherPlugin(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(openDir(t), "other.sock")
	other := kmsservice.NewGRPCService(path, time.Second, plainService{})
	done := make(chan error, 1)
	go func() { done <- other.ListenAndServe() }()
	w.Eventually(func() error {
		c, err := net.Dial("unix", path)
		if err == nil {
			_ = c.Close()
		}
		return err
	}).WithTimeout(deadline).Should(Succeed())
	w.at.Address = path
	w.Expect(w.judge(w.dial(), deadline)).To(Succeed())
	other.Close()
	<-done
}

type plainService struct{}

func (plainService) Status(context.Context) (*kmsservice.StatusResponse, error) {
	return &kmsservice.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "1"}, nil
}

func (plainService) Encrypt(_ context.Context, _ string, data []byte) (*kmsservice.EncryptResponse, error) {
	return &kmsservice.EncryptResponse{Ciphertext: flip(data), KeyID: "1"}, nil
}

func (plainService) Decrypt(_ context.Context, uid string, req *kmsservice.DecryptRequest) ([]byte, error) {
	if uid == "" {
		return nil, errors.New("uid is required")
	}
	if req.KeyID != "1" {
		return nil, fmt.Errorf("unknown key %q", req.KeyID)
	}
	return flip(req.Ciphertext), nil
}

func flip(data []byte) []byte {
	out := make([]byte, len(data))
	for i, b := range data {
		out[i] = ^b
	}
	return out
}
