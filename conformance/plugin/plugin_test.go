package plugin

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/conformance"
	kms "github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/harness/starvation"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mirror is a plugin whose ciphertext is the plaintext: enough for what is tested here.
type mirror struct {
	kmsapi.UnimplementedKeyManagementServiceServer
	status func() (*kmsapi.StatusResponse, error)
}

func (m mirror) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return m.status()
}

func ok() (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "key"}, nil
}

// serve serves a plugin until the test ends, and returns its endpoint.
func serve(t *testing.T, status func() (*kmsapi.StatusResponse, error)) (endpoint string, stop func()) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kms.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(s, mirror{status: status})
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	stop = func() { s.Stop(); <-ended }
	t.Cleanup(stop)
	return "unix://" + path, stop
}

func short() *Timing {
	t := DefaultTiming()
	t.Call, t.Start = 500*time.Millisecond, 500*time.Millisecond
	return &t
}

func check(id string, after []string, run func(context.Context, *Plugin) error) Check {
	return Check{Check: conformance.Check{ID: id, Profile: conformance.Core}, After: after, Run: run}
}

func outcomes(t *testing.T, endpoint string, o Options) map[string]conformance.Result {
	t.Helper()
	o.Timing = short()
	report, err := Run(t.Context(), Subject{Endpoint: endpoint}, o)
	if err != nil {
		t.Fatal(err)
	}
	results := map[string]conformance.Result{}
	for _, r := range report.Results {
		results[r.ID] = r
	}
	return results
}

func pass(context.Context, *Plugin) error { return nil }

// TestOneCauseOneFinding: what depends on a failed check is blocked, and so is what depends on that.
func TestOneCauseOneFinding(t *testing.T) {
	endpoint, _ := serve(t, ok)
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, func(context.Context, *Plugin) error { return found("Status", "x", "y") }),
		check("B", []string{"A"}, pass), check("C", []string{"B"}, pass), check("D", nil, pass),
		{Check: conformance.Check{ID: "E", Needs: []conformance.Capability{HookRotate}}, Run: pass},
	}, Selection: conformance.Selection{Skip: map[string]string{"D": "known"}}})
	for id, want := range map[string]conformance.Outcome{
		"A": conformance.Failed, "B": conformance.Blocked, "C": conformance.Blocked, "D": conformance.Skipped, "E": conformance.NotSupported,
	} {
		if got[id].Outcome != want {
			t.Errorf("%s: %s, want %s", id, got[id].Outcome, want)
		}
	}
}

// TestPluginThatEndsInACheck: the check after which the plugin no longer answers has failed, whatever it found itself, and the others are blocked by it.
func TestPluginThatEndsInACheck(t *testing.T) {
	endpoint, stop := serve(t, ok)
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, pass),
		check("B", nil, func(context.Context, *Plugin) error { stop(); return nil }),
		check("C", nil, pass),
	}})
	if got["A"].Outcome != conformance.Passed || got["B"].Outcome != conformance.Failed || got["C"].Outcome != conformance.Blocked {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got["C"].Reason, "since B") {
		t.Errorf("reason %q, want the check that ended the plugin", got["C"].Reason)
	}
}

// TestStatusThatFailsNowAndThen ends no plugin.
func TestStatusThatFailsNowAndThen(t *testing.T) {
	calls := 0
	endpoint, _ := serve(t, func() (*kmsapi.StatusResponse, error) {
		if calls++; calls%2 == 0 {
			return nil, status.Error(codes.Internal, "now and then")
		}
		return ok()
	})
	if got := outcomes(t, endpoint, Options{Checks: []Check{check("A", nil, pass), check("B", nil, pass), check("C", nil, pass)}}); got["C"].Outcome != conformance.Passed {
		t.Errorf("%+v", got)
	}
}

// TestStatusThatFailsForGood is one finding, and what follows is blocked.
func TestStatusThatFailsForGood(t *testing.T) {
	var broken atomic.Bool
	endpoint, _ := serve(t, func() (*kmsapi.StatusResponse, error) {
		if broken.Load() {
			return nil, status.Error(codes.Internal, "for good")
		}
		return ok()
	})
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, pass), check("B", nil, func(context.Context, *Plugin) error { broken.Store(true); return nil }), check("C", nil, pass), check("D", nil, pass),
	}})
	if got["B"].Outcome != conformance.Failed || !strings.Contains(got["B"].Evidence.Response, "for good") || got["B"].Consequence != consequenceEnds {
		t.Errorf("the check after which it fails: %+v", got["B"])
	}
	if got["C"].Outcome != conformance.Blocked || got["D"].Outcome != conformance.Blocked {
		t.Errorf("what follows: %+v, %+v", got["C"], got["D"])
	}
}

// TestStarvation: a time that passes while the machine starves is neither a failure nor a pass, and what depends on the check is not judged. An
// answer that is wrong fails nevertheless.
func TestStarvation(t *testing.T) {
	endpoint, _ := serve(t, ok)
	starve := func(finding error) JudgeFunc {
		return func(_ context.Context, p *Plugin) error {
			now := time.Now()
			p.starved.add(starvation.Span{From: now.Add(-time.Second), To: now})
			return finding
		}
	}
	late := found("Status", status.Error(codes.DeadlineExceeded, "late"), "an answer")
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, starve(late)), check("B", []string{"A"}, pass), check("C", nil, starve(found("Status", "wrong", "right"))),
		check("D", nil, func(context.Context, *Plugin) error { return late }), check("E", nil, starve(nil)),
	}})
	for id, want := range map[string]conformance.Outcome{
		"A": conformance.Inconclusive, "B": conformance.Inconclusive, "C": conformance.Failed, "D": conformance.Failed, "E": conformance.Passed,
	} {
		if got[id].Outcome != want {
			t.Errorf("%s: %s %s, want %s", id, got[id].Outcome, got[id].Reason, want)
		}
	}
}

// lagging is a connection whose end is noticed late, as by a client that gets no processor.
type lagging struct{ net.Conn }

func (l lagging) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if err != nil {
		<-time.After(200 * time.Millisecond)
	}
	return n, err
}

// TestCallThatWaits: a call after the end of the plugin waits for the next start, also if the connection has not noticed the end yet.
func TestCallThatWaits(t *testing.T) {
	address, stop := serve(t, ok)
	at, err := kms.ParseUnix(address)
	if err != nil {
		t.Fatal(err)
	}
	p := &client{at: at, timing: *short(), traffic: &traffic{}}
	if p.conn, err = p.Dial(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		c, err := at.Dial(ctx, host.Host{})
		return lagging{c}, err
	})); err != nil {
		t.Fatal(err)
	}
	defer p.conn.Close()
	if _, err := p.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	p.disconnected(t.Context())
	if _, err := p.Status(t.Context()); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a call after the end: %v, want that it waits", err)
	}
}

// TestWaitingIsReported: a plugin that does not listen is reported while the suite waits, with its output.
func TestWaitingIsReported(t *testing.T) {
	var lines []string
	timing := *short()
	timing.Start = firstNotice + 500*time.Millisecond
	_, err := Run(t.Context(), Subject{Command: "sh -c 'echo looking for the HSM; sleep 60' {socket}"}, Options{Timing: &timing, Waiting: func(line string) { lines = append(lines, line) }})
	if err == nil || len(lines) != 1 || !strings.Contains(lines[0], "2s of at most 2.5s; its last output: looking for the HSM") {
		t.Errorf("%v, %q", err, lines)
	}
}

func TestErrorsThatAreNoFindings(t *testing.T) {
	endpoint, _ := serve(t, ok)
	got := outcomes(t, endpoint, Options{Checks: []Check{
		check("A", nil, func(context.Context, *Plugin) error { return errors.New("plain") }),
		check("B", nil, func(context.Context, *Plugin) error { return hookError{errors.New("exit status 3")} }),
		check("C", nil, func(context.Context, *Plugin) error { return unsupported{"nothing was refused"} }),
	}})
	if got["C"].Outcome != conformance.NotSupported || got["C"].Reason != "nothing was refused" {
		t.Errorf("nothing to judge: %+v", got["C"])
	}
	if got["A"].Outcome != conformance.Failed || got["A"].Evidence.Response != "plain" {
		t.Errorf("an error: %+v", got["A"])
	}
	if got["B"].Outcome != conformance.Blocked || !strings.Contains(got["B"].Reason, "exit status 3") {
		t.Errorf("a hook that failed: %+v", got["B"])
	}
}

func TestRunNamesTheMistake(t *testing.T) {
	endpoint, _ := serve(t, ok)
	for _, c := range []struct {
		subject Subject
		options Options
		want    string
	}{
		{Subject{}, Options{}, "neither an endpoint nor a command"},
		{Subject{Endpoint: "tcp://x"}, Options{}, "unix:///PATH"},
		{Subject{Endpoint: "unix:///nowhere/kms.sock"}, Options{}, "start the plugin first"},
		{Subject{Command: "sh -c 'echo no key >&2; exit 3' {socket}"}, Options{Timing: short()}, "the command has ended: the process ended: exit code 3; its last output: no key"},
		{Subject{Command: "sh -c 'echo ready; sleep 60' {socket}"}, Options{Timing: short()}, "make it listen at {endpoint} or {socket}; its last output: ready"},
		{Subject{Command: "no-such-program {socket}"}, Options{}, "no-such-program"},
		{Subject{Command: "true"}, Options{}, "expected {socket} or {endpoint}"},
		{Subject{Endpoint: endpoint, Hooks: Hooks{Break: "x"}}, Options{}, "plugin.restore"},
		{Subject{Endpoint: endpoint, Hooks: Hooks{Rotate: "x {nodes}"}}, Options{}, "{nodes} is unknown"},
		{Subject{Endpoint: endpoint, Second: "tcp://x"}, Options{}, "unix:///PATH"},
		{Subject{Command: "p {socket}", Addresses: []string{"a", "b"}}, Options{}, "a command with {address}"},
		{Subject{Command: "p {socket} {address}", Addresses: []string{"a"}}, Options{}, "expected two"},
		{Subject{Endpoint: endpoint, Log: "/nowhere"}, Options{}, "the log of the plugin"},
		{Subject{Endpoint: endpoint}, Options{Selection: conformance.Selection{Skip: map[string]string{"KMS2-STATUS-VERSOIN": "x"}}}, `did you mean "KMS2-STATUS-VERSION"?`},
		{Subject{Endpoint: endpoint}, Options{Selection: conformance.Selection{Skip: map[string]string{"KMS2-STATUS-VERSION": ""}}}, "expected a reason"},
	} {
		if _, err := Run(t.Context(), c.subject, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.subject, err, c.want)
		}
	}
}

func TestHookErrorShowsItsOutput(t *testing.T) {
	h := hooks{timeout: time.Second}
	err := h.run(t.Context(), "hook-break", "sh -c 'echo no such vault; exit 3'", ModeFail)
	if err == nil || !strings.Contains(err.Error(), "no such vault") || !strings.Contains(err.Error(), "exit code 3") {
		t.Errorf("error %v, want the output and the exit code", err)
	}
	h.timeout = 50 * time.Millisecond
	if err := h.run(t.Context(), "hook-break", "sleep 5", ModeFail); err == nil || !strings.Contains(err.Error(), "did not end within 50ms") {
		t.Errorf("error %v, want that the hook did not end", err)
	}
}

// TestAddress: URLs, hosts with a port and IPv4 addresses, and not what identifies a key.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"\n\x05admin\x12\x1ehttps://vault.example.com:8200\x1a\x07transit": "https://vault.example.com:8200",
		"vault.example.com:8200/transit/key":                               "vault.example.com:8200",
		"10.0.0.5/transit/key":                                             "10.0.0.5",
		"localhost:8200":                                                   "localhost:8200",
		"arn:aws:kms:us-east-1:123456789012:key/38608a2a":                  "",
		"projects/p/locations/l/cryptoKeys/k/cryptoKeyVersions/1":          "",
		"pkcs11:token=kms;object=kek":                                      "",
		"v1.10.3":                                                          "",
		"999.1.1.1":                                                        "",
	} {
		if got := string(address.Find([]byte(text))); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestEdges keeps the answers next to a change of the key_id.
func TestEdges(t *testing.T) {
	e := edges{}
	for n := range 3 * tornKept {
		e.add(Sealed{[]byte{byte(n)}, &kmsapi.EncryptResponse{KeyId: "a"}})
	}
	if of := e["a"]; len(of.first) != tornKept || len(of.last) != tornKept || of.first[0].Plaintext[0] != 0 || of.last[tornKept-1].Plaintext[0] != 3*tornKept-1 {
		t.Errorf("%+v", e["a"])
	}
}

func TestFindCredential(t *testing.T) {
	for text, want := range map[string]string{
		"dial https://u:p@kms/v1":                        "a URL with a password",
		"-----BEGIN EC PRIVATE KEY-----":                 "a private key in PEM",
		"AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQ":   "a secret key of age",
		"Authorization: Bearer abcdefghijklmnop":         "a bearer token",
		"token hvs.CAESIJ1234567890abcdefghijklmn":       "a token of Vault or OpenBao",
		"pkcs11:token=kms?pin-value=1234":                "a PIN in a PKCS#11 URI",
		"https://kms.example.com/v1/keys/a?version=2":    "",
		"listen unix:///run/kms.sock, 3 keys, status ok": "",
		"bearer token expired":                           "",
	} {
		if got := findCredential([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestReadable: a secret in a dump is found, although no line of the log contains it.
func TestReadable(t *testing.T) {
	log := []byte("serving\n" + hex.Dump([]byte("identity AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQ\n")) + "done\n")
	if findCredential(log) != "" || findCredential(readable(log)) != "a secret key of age" {
		t.Errorf("%q", readable(log))
	}
}

func TestFindPlaintext(t *testing.T) {
	plaintext := []byte("0123456789abcdefghijklmnopqrstuv")
	for _, text := range []string{
		"x 0123456789abcdefghijklmnopqrstuv y", "x MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY= y",
		"x 303132333435363738396162636465666768696a6b6c6d6e6f70717273747576 y",
	} {
		if findPlaintext([]byte(text), [][]byte{plaintext}) == "" {
			t.Errorf("the plaintext in %q is not found", text)
		}
	}
	if form := findPlaintext([]byte("0123456789abcdef"), [][]byte{plaintext}); form != "" {
		t.Errorf("half a plaintext is found %s", form)
	}
}

// TestCatalogueIsComplete: each check says all that a report shows, and core checks need nothing.
func TestCatalogueIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Catalogue() {
		if seen[c.ID] || !strings.HasPrefix(c.ID, "KMS2-") {
			t.Errorf("id %q: expected a new one that begins with KMS2-", c.ID)
		}
		for _, text := range []string{c.Title, c.Rule, c.Source, c.Consequence, string(c.Profile)} {
			if text == "" || c.Run == nil {
				t.Errorf("%s: a text or the function is missing", c.ID)
			}
		}
		if !strings.HasSuffix(c.Rule, ".") || !strings.HasSuffix(c.Consequence, ".") {
			t.Errorf("%s: rule and consequence are sentences", c.ID)
		}
		if c.Profile == conformance.Core && (len(c.Needs) > 0 || c.Waits) {
			t.Errorf("%s: a core check needs no capability and does not wait", c.ID)
		}
		for _, need := range c.Needs {
			if explain[need] == "" {
				t.Errorf("%s: capability %s is not explained", c.ID, need)
			}
		}
		for _, id := range c.After {
			if !seen[id] {
				t.Errorf("%s: it depends on %s, which does not run before it", c.ID, id)
			}
		}
		seen[c.ID] = true
	}
	for _, id := range append(preflightIDs(), slices.Collect(maps.Keys(judges))...) {
		if !seen[id] {
			t.Errorf("no check has the id %s", id)
		}
	}
}
