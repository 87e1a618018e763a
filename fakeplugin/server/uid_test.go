package server

import (
	"context"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
)

// rawCodec sends and receives bytes as they are: a client that was generated from another version of the API.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// olderEncrypt is an EncryptRequest of an API that has no uid: the plaintext and nothing else.
func olderEncrypt(plain string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), plain)
}

// uidWorld is a plugin that does or does not demand a uid, and a client without one.
func uidWorld(t *testing.T, optional bool) (w *world, encrypt func() (*kmsapi.EncryptResponse, error), kms *journal.Log[remotekms.Operation]) {
	t.Helper()
	w = &world{WithT: NewWithT(t), t: t, at: endpoint.Endpoint{Network: "unix", Address: filepath.Join(openDir(t), "kms-1.sock")}}
	kms = journal.New[remotekms.Operation](journal.DefaultCapacity, nil)
	model, err := remotekms.New(remotekms.Options{Journal: kms})
	w.Expect(err).NotTo(HaveOccurred())
	w.plugin = plugin.New(plugin.Options{Name: "cp-1/1", Key: "key-1", Service: model, UIDOptional: optional})
	w.Expect(w.plugin.Poll(t.Context())).To(Succeed())
	w.server = New(Options{Listen: w.at, Node: "cp-1", KeyID: "1", Plugin: &plugin.Service{Plugin: w.plugin}})
	w.run()
	w.client = w.dial()
	conn, err := grpc.NewClient("unix://"+w.at.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	return w, func() (*kmsapi.EncryptResponse, error) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		in, out := olderEncrypt(seed), []byte(nil)
		if err := conn.Invoke(ctx, kmsapi.KeyManagementService_Encrypt_FullMethodName, &in, &out, grpc.ForceCodecV2(rawCodec{})); err != nil {
			return nil, err
		}
		resp := &kmsapi.EncryptResponse{}
		return resp, proto.Unmarshal(out, resp)
	}, kms
}

// A request without a uid is, byte for byte, what an older API server sends.
func TestNoUIDIsNoBytes(t *testing.T) {
	now, err := proto.Marshal(&kmsapi.EncryptRequest{Plaintext: []byte(seed)})
	NewWithT(t).Expect(now, err).To(Equal(olderEncrypt(seed)))
}

func TestOlderClientIsServedWhereTheUIDIsOptional(t *testing.T) {
	w, encrypt, kms := uidWorld(t, true)
	enc, err := encrypt()
	w.Expect(err).NotTo(HaveOccurred())
	dec, err := w.client.Decrypt(t.Context(), &kmsapi.DecryptRequest{Ciphertext: enc.Ciphertext, KeyId: enc.KeyId})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(string(dec.Plaintext)).To(Equal(seed))
	for _, m := range []fault.Method{fault.Encrypt, fault.Decrypt} {
		c := w.last(m)
		w.Expect([]string{c.UID, c.Code, c.DEKSource}).To(Equal([]string{"", "OK", journal.Digest(enc.Ciphertext)}))
	}
	asked, _ := kms.After(0, 100)
	for _, o := range asked {
		w.Expect([]string{o.UID, o.Code}).To(Equal([]string{"", "ok"}), o.Op)
	}
}

func TestOlderClientIsRefusedWhereTheUIDIsRequired(t *testing.T) {
	w, encrypt, _ := uidWorld(t, false)
	_, err := encrypt()
	w.Expect(status.Code(err)).To(Equal(codes.InvalidArgument))
	w.Expect(err.Error()).To(ContainSubstring("uid is required"))
	w.Expect(w.last(fault.Encrypt).Code).To(Equal("InvalidArgument"))
}

// The fault takes away what the client sent: with it the plugin, its journal and its KMS know no uid.
func TestUIDTakenAway(t *testing.T) {
	w := newWorld(t)
	w.inject("no-uid")
	w.Expect(w.judge(w.client, deadline)).To(Succeed())
	w.Expect(w.last(fault.Encrypt).UID).To(BeEmpty())
	w.Expect(w.last(fault.Decrypt).UID).To(BeEmpty())
	w.Expect(w.last(fault.Encrypt).Faults).To(Equal([]string{"no-uid"}))
}
