package virtualcluster_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiserverconfig "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/client-go/kubernetes"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/harness/virtualcluster"
)

// plugin is a KMS v2 plugin with a key of its own. It is an ordinary one.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	aead cipher.AEAD
}

func newPlugin() (*plugin, error) {
	block, err := aes.NewCipher([]byte("a key of exactly 32 bytes length"))
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &plugin{aead: aead}, err
}

func (*plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "key-1"}, nil
}

func (p *plugin) Encrypt(_ context.Context, r *kmsapi.EncryptRequest) (*kmsapi.EncryptResponse, error) {
	nonce := make([]byte, p.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return &kmsapi.EncryptResponse{Ciphertext: p.aead.Seal(nonce, nonce, r.Plaintext, nil), KeyId: "key-1"}, nil
}

func (p *plugin) Decrypt(_ context.Context, r *kmsapi.DecryptRequest) (*kmsapi.DecryptResponse, error) {
	n := p.aead.NonceSize()
	if len(r.Ciphertext) < n {
		return nil, errors.New("the ciphertext is too short")
	}
	text, err := p.aead.Open(nil, r.Ciphertext[:n], r.Ciphertext[n:], nil)
	return &kmsapi.DecryptResponse{Plaintext: text}, err
}

// encrypting is an EncryptionConfiguration for Secrets by the plugin at a socket.
func encrypting(socket string) *apiserverconfig.EncryptionConfiguration {
	return &apiserverconfig.EncryptionConfiguration{Resources: []apiserverconfig.ResourceConfiguration{{
		Resources: []string{"secrets"},
		Providers: []apiserverconfig.ProviderConfiguration{
			{KMS: &apiserverconfig.KMSConfiguration{APIVersion: "v2", Name: "own", Endpoint: "unix://" + socket, Timeout: &metav1.Duration{Duration: 3 * time.Second}}},
			{Identity: &apiserverconfig.IdentityConfiguration{}},
		},
	}}}
}

// A plugin hangs for five minutes, and for the last two of them kube-apiserver refuses to encrypt. It takes no real time.
func TestKMSPluginHangs(t *testing.T) {
	virtualcluster.Run(t, virtualcluster.Options{Seed: 1}, func(ctx context.Context, t *testing.T, c *virtualcluster.Cluster) {
		g := NewWithT(t)
		p, err := newPlugin()
		g.Expect(err).NotTo(HaveOccurred())
		socket := filepath.Join(c.Dir(), "kms.sock")
		l, err := c.Host("kms").Listen(ctx, "unix", socket)
		g.Expect(err).NotTo(HaveOccurred())
		server := grpc.NewServer()
		kmsapi.RegisterKeyManagementServiceServer(server, p)
		go func() { _ = server.Serve(l) }() // Stop ends it
		defer server.Stop()

		g.Expect(c.SetEncryption(encrypting(socket))).To(Succeed())
		time.Sleep(2 * time.Minute) // API servers read the file once a minute
		config, err := c.Host("user").Config("cp-1")
		g.Expect(err).NotTo(HaveOccurred())
		secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default")
		write := func(name string) error {
			_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: name}}, metav1.CreateOptions{})
			return err
		}
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Data: map[string][]byte{"a": []byte("text")}}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.Stored(corev1.SchemeGroupVersion.WithResource("secrets"), "default", "first")).To(HavePrefix("k8s:enc:kms:v2:own:"))

		hangs, began := virtualcluster.HostFrozen{Name: "kms"}, time.Now()
		g.Expect(c.Inject(ctx, hangs)).To(Succeed())
		g.Consistently(write).WithArguments("during").WithTimeout(2 * time.Minute).WithPolling(10 * time.Second).Should(Succeed())
		g.Eventually(write).WithArguments("during").WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(MatchError(ContainSubstring("expired at")))
		t.Logf("after %v: %v", time.Since(began), write("late"))
		time.Sleep(5*time.Minute - time.Since(began))

		g.Expect(c.Release(ctx, hangs)).To(Succeed())
		began = time.Now()
		g.Eventually(write).WithArguments("after").WithTimeout(time.Minute).WithPolling(time.Second).Should(Succeed())
		t.Logf("back %v after the plugin", time.Since(began))
	})
}
