package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/fakeplugin/fault"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMistakesGetOneLineAndACode(t *testing.T) {
	t.Setenv(EnvControl, "")
	t.Setenv(EnvRemoteKMS, "")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := "--listen=unix://" + dir + "/kms-1.sock"
	for args, want := range map[string]string{
		"frobnicate":                              "unknown command",
		"serve":                                   "--listen is missing",
		"serve --listen=tcp://127.0.0.1:1":        "unix:///PATH",
		"serve --listen=unix://" + file:           "is not a socket",
		"serve --wrong":                           "unknown flag",
		"serve " + listen + " --fault=hnag":       `did you mean "hang"?`,
		"serve " + listen + " --fault=delay:by=5": "a duration such as 250ms",
		"serve " + listen + " --control=tcp://:0": "TCP needs --token-file",
		"serve " + listen + " --token-file=/none --control=unix://" + dir + "/c":   "no such file",
		"serve " + listen + " --socket-mode=rw":                                    "expected octal permissions",
		"serve " + listen + " --notice-lag=-1s":                                    "--notice-lag",
		"serve " + listen + " --poll=0s":                                           "expected positive durations",
		"serve " + listen + " --remote=nowhere":                                    "--remote",
		"serve " + listen + " --log-format=xml":                                    "expected json or text",
		"serve " + listen + " --journal=" + dir:                                    "is a directory",
		"serve " + listen + " --profile=awss":                                      "there are: aws, azure",
		"serve " + listen + " --profile=" + file + "/x.yaml":                       "not a directory",
		"serve " + listen + " --profile=aws --fault=provider-failure:failure=gone": "the profile aws has no failure",
		"serve " + listen + " --fault=provider-failure:failure=gone":               "this plugin has no profile",
		"serve " + listen + " --upstream=unix:///x.sock --remote=unix:///k":        "--remote and --upstream: expected one of them",
		"serve " + listen + " --state=" + dir + " --remote=unix:///k":              "--state and --remote: expected one of them",
		"serve " + listen + " --state=" + file:                                     "--state",
		"serve " + listen + " --upstream=tcp://127.0.0.1:1":                        "--upstream",
		"profiles ibm":                      "there is no profile",
		"remote":                            "--listen is missing",
		"remote --listen=tcp://127.0.0.1:0": "TCP needs --token-file",
		"remote --listen=unix://" + dir + "/k --state=" + file: "is not one of this KMS",
		"status": "--control is missing",
		"status --control=unix://" + dir + "/none": "no such file",
		"inject":                  "requires at least 1 arg",
		"inject hang by":          "expected NAME=VALUE",
		"inject hang a=1 a=2":     "occurs twice",
		"faults hnag":             `did you mean "hang"?`,
		"kms keys":                "--remote is missing",
		"kms state k one enabled": "--remote is missing",
		"kms rule [ --remote=unix://" + dir + "/none": "no such file",
	} {
		var stdout, stderr bytes.Buffer
		code := Main(context.Background(), host.Host{}, strings.Fields(args), &stdout, &stderr)
		text := stderr.String()
		if args == "kms state k one enabled" {
			want = "VERSION"
		}
		if code != 2 || !strings.Contains(text, want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: code %d, stderr %q, want one line with %q", args, code, text, want)
		}
	}
}

// Every command says how it is used, with an example; the program's own programs-in-a-program (help, completion) apart.
func TestEveryCommandHasAnExample(t *testing.T) {
	for _, cmd := range append(NewPluginCommand(fault.Catalogue{}).Commands(), NewServeCommand(host.Host{}, Options{}), NewRemoteCommand(host.Host{})) {
		for _, c := range append(cmd.Commands(), cmd) {
			if c.Example == "" || c.Short == "" {
				t.Errorf("%s has no example", c.CommandPath())
			}
		}
	}
}

// start runs a command in the background until the test ends, or until the caller ends it.
func start(t *testing.T, args ...string) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() { code <- Main(ctx, host.Host{}, args, &bytes.Buffer{}, &stderr) }()
	end = sync.OnceFunc(func() {
		stop()
		select {
		case c := <-code:
			if c != 0 {
				t.Errorf("%v ended with %d: %s", args, c, stderr.String())
			}
		case <-time.After(2 * time.Second):
			t.Errorf("%v does not stop within 2 s", args)
		}
	})
	t.Cleanup(end)
	return end
}

// TestStateKeepsTheKeys: a plugin with --state decrypts after a restart what it encrypted before, under the same key_id.
func TestStateKeepsTheKeys(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	at := "unix://" + dir + "/kms-1.sock"
	serve := []string{"serve", "--listen", at, "--state", dir + "/state", "--poll", "5ms"}
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	client, ctx := kmsapi.NewKeyManagementServiceClient(conn), t.Context()
	end := start(t, serve...)
	sealed, err := client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "1", Plaintext: []byte("seed")})
	g.Expect(err).NotTo(HaveOccurred())
	end()
	start(t, serve...)
	g.Eventually(func() (string, error) {
		opened, err := client.Decrypt(ctx, &kmsapi.DecryptRequest{Uid: "2", Ciphertext: sealed.Ciphertext, KeyId: sealed.KeyId, Annotations: sealed.Annotations})
		return string(opened.GetPlaintext()), err
	}).Should(Equal("seed"))
	status, err := client.Status(ctx, &kmsapi.StatusRequest{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(status.KeyId).To(Equal(sealed.KeyId))
}

// verb runs a verb and returns what it printed.
func verb(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	if Main(context.Background(), host.Host{}, args, &stdout, &stderr) != 0 {
		return "", &failure{stderr.String()}
	}
	return stdout.String(), nil
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// The programs together, as an administrator uses them: a remote KMS, a plugin, verbs, and a uid that is found in all journals.
func TestPluginAndKMSTogether(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	kmsAt, ctlAt, at := "unix://"+dir+"/kms.sock", "unix://"+dir+"/ctl.sock", "unix://"+dir+"/kms-7.sock"
	start(t, "remote", "--listen", kmsAt, "--state", dir+"/state.json", "--journal", dir+"/kms.jsonl")
	g.Eventually(func() error { _, err := verb("kms", "keys", "--remote", kmsAt); return err }).Should(Succeed())
	start(t, "serve", "--listen", at, "--node", "cp-1", "--key", "key-7", "--control", ctlAt, "--remote", kmsAt, "--journal", dir+"/calls.jsonl", "--poll", "5ms", "--fault", "healthz:count=1")
	g.Eventually(func() error { _, err := verb("status", "--control", ctlAt); return err }).Should(Succeed())

	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	client, ctx := kmsapi.NewKeyManagementServiceClient(conn), context.Background()
	healthz := func() string {
		s, err := client.Status(ctx, &kmsapi.StatusRequest{})
		g.Expect(err).NotTo(HaveOccurred())
		return s.Healthz
	}
	g.Expect([]string{healthz(), healthz()}).To(Equal([]string{"not ok", "ok"}), "a fault from the start, bounded by count")
	_, err = client.Encrypt(ctx, &kmsapi.EncryptRequest{Uid: "uid-42", Plaintext: []byte("seed")})
	g.Expect(err).NotTo(HaveOccurred())

	out, err := verb("inject", "healthz", "text=on fire", "--control", ctlAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(`"name": "healthz"`))
	g.Expect(healthz()).To(Equal("on fire"))
	_, err = verb("release", "--name", "healthz", "--control", ctlAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(healthz()).To(Equal("ok"))

	_, err = verb("kms", "rule", "cp-1/*", "--cut-off", "refuse", "--remote", kmsAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(healthz).Should(ContainSubstring("remote KMS unreachable"))
	_, err = verb("kms", "unrule", "cp-1/*", "--remote", kmsAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(healthz).Should(Equal("ok"))
	_, err = verb("kms", "state", "key-7", "1", "disabled", "--remote", kmsAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(healthz).Should(ContainSubstring("is disabled"))
	_, err = verb("kms", "state", "key-7", "1", "enabled", "--remote", kmsAt)
	g.Expect(err).NotTo(HaveOccurred())

	out, err = verb("rotate", "--notice", "--control", ctlAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(`"version": 2`))
	out, err = verb("journal", "--method", "Encrypt", "--control", ctlAt)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring(`"uid":"uid-42"`))

	var call journal.Call
	g.Expect(json.Unmarshal(lineWith(g, dir+"/calls.jsonl", "uid-42"), &call)).To(Succeed())
	var op remotekms.Operation
	g.Expect(json.Unmarshal(lineWith(g, dir+"/kms.jsonl", "uid-42"), &op)).To(Succeed())
	g.Expect([]string{call.Node, call.KeyID, call.KEKID}).To(Equal([]string{"cp-1", "7", op.KEKID}))
	g.Expect(op.Plugin).To(Equal("cp-1/7"))
}

func lineWith(g *WithT, file, text string) []byte {
	b, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	for _, line := range bytes.Split(b, []byte("\n")) {
		if bytes.Contains(line, []byte(text)) {
			return line
		}
	}
	g.Expect(string(b)).To(ContainSubstring(text))
	return nil
}

// The profiles are listed with every failure, and one of them with what each method answers.
func TestProfilesAreListed(t *testing.T) {
	g := NewWithT(t)
	var all, one, problem bytes.Buffer
	g.Expect(Main(context.Background(), host.Host{}, []string{"profiles"}, &all, &problem)).To(BeZero(), problem.String())
	for _, want := range []string{"aws", "credentials-expired", "vault", "encrypt-denied", "thales", "session-lost"} {
		g.Expect(all.String()).To(ContainSubstring(want))
	}
	g.Expect(Main(context.Background(), host.Host{}, []string{"profiles", "aws"}, &one, &problem)).To(BeZero(), problem.String())
	g.Expect(one.String()).To(And(ContainSubstring("a rotation does not show in it"), ContainSubstring(`Status: healthz "err"`), ContainSubstring("ExpiredTokenException")))
}
