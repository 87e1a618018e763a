package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/entry"
)

const (
	maxResidentKiB = 20 << 10 // the budget of an idle reporter on 3 plugins
	idleWrites     = 6        // after so many writes it is idle: everything was used once, garbage was collected
	patience       = 60 * time.Second
	stopLimit      = 2 * time.Second
)

var program string // the built program

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kms-health-reporter")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "kms-health-reporter")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// plugin is always healthy.
type plugin struct {
	kmsapi.UnimplementedKeyManagementServiceServer
}

func (plugin) Status(context.Context, *kmsapi.StatusRequest) (*kmsapi.StatusResponse, error) {
	return &kmsapi.StatusResponse{Version: "v2", Healthz: "ok", KeyId: "kek-1"}, nil
}

// servePlugins starts n plugins and returns their endpoints.
func servePlugins(t *testing.T, n int) string {
	t.Helper()
	dir, endpoints := t.TempDir(), make([]string, n)
	for i := range n {
		path := fmt.Sprintf("%s/kms-%d.sock", dir, i+1)
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		kmsapi.RegisterKeyManagementServiceServer(server, plugin{})
		go server.Serve(listener)
		t.Cleanup(server.Stop)
		endpoints[i] = "unix://" + path
	}
	return strings.Join(endpoints, ",")
}

// writes are the applies that the API server took.
type writes struct {
	mu   sync.Mutex
	seen []applied
}

type applied struct {
	at      time.Time
	checked time.Time // the first lastChecked, zero in the typed form
}

func (w *writes) all() []applied {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

func (w *writes) add(body []byte) {
	var o struct {
		Status struct {
			Conditions []struct {
				Message string `json:"message"`
			} `json:"conditions"`
		} `json:"status"`
	}
	a := applied{at: time.Now()}
	if json.Unmarshal(body, &o) == nil && len(o.Status.Conditions) == 1 {
		if entries, err := contract.DecodeMessage(o.Status.Conditions[0].Message); err == nil {
			a.checked = entries[0].LastChecked
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, a)
}

// serveAPI takes every apply and keeps it in seen; it returns a kubeconfig for itself.
func serveAPI(t *testing.T, seen *writes) (kubeconfig string) {
	t.Helper()
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPatch {
			seen.add(body)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":{"padding":"`+strings.Repeat("x", 8<<10)+`"}}`) // a CR with three reporters' entries
	}))
	t.Cleanup(api.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],`+
		`"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`,
		api.URL, base64.StdEncoding.EncodeToString(ca))
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// start runs the program; its log is shown when the test fails.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, ended <-chan error) {
	t.Helper()
	logged, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = logged, logged
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait(); close(done) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-done
		logged.Close()
		if t.Failed() {
			text, _ := os.ReadFile(logged.Name())
			t.Logf("log of the reporter:\n%s", text)
		}
	})
	return cmd, done
}

// eventually waits for what until holds, looking often.
func eventually(t *testing.T, what string, until func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !until() {
		select {
		case <-deadline.C:
			t.Fatalf("waited %v for %s", patience, what)
		case <-look.C:
		}
	}
}

func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skipf("resident memory is read from /proc: %v", err)
	}
	for _, line := range regexp.MustCompile(`(?m)^(VmHWM|VmRSS|Rss\w+):.*$`).FindAllString(string(text), -1) {
		t.Log(strings.Join(strings.Fields(line), " "))
	}
	m := regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// TestIdleMemoryAndCleanStop runs the real program on three plugins until it is idle.
func TestIdleMemoryAndCleanStop(t *testing.T) {
	for _, form := range []string{"conditions", "healthreports"} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			var seen writes
			cmd, ended := start(t, "--kms-sockets="+servePlugins(t, 3), "--node-name=cp-1", "--kubeconfig="+serveAPI(t, &seen),
				"--interval=1s", "--read-timeout=500ms", "--write-timeout=1s", "--metrics-address=127.0.0.1:0", "--contract="+form)
			eventually(t, fmt.Sprintf("%d writes", idleWrites), func() bool { return len(seen.all()) >= idleWrites })
			if kib := residentKiB(t, cmd.Process.Pid); kib >= maxResidentKiB {
				t.Errorf("resident memory %d KiB, budget %d KiB", kib, maxResidentKiB)
			}
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil || time.Since(began) > stopLimit {
				t.Errorf("after SIGTERM: ended after %v with %v, expected exit 0 within %v", time.Since(began), err, stopLimit)
			}
		})
	}
}

// TestPausedReporterWritesNothingOldAndCatchesUpOnce stops the real program at several phases of its tick.
func TestPausedReporterWritesNothingOldAndCatchesUpOnce(t *testing.T) {
	t.Parallel()
	const pauses, interval, noise = 3, time.Second, 500 * time.Millisecond
	maxAge := interval + 500*time.Millisecond + time.Second // I + R + W
	var seen writes
	cmd, _ := start(t, "--kms-sockets="+servePlugins(t, 1), "--node-name=cp-1", "--kubeconfig="+serveAPI(t, &seen),
		"--interval=1s", "--read-timeout=500ms", "--write-timeout=1s")
	for i := range pauses {
		before := len(seen.all())
		eventually(t, "a write", func() bool { return len(seen.all()) > before })
		stopFor(t, cmd.Process, 3*interval+time.Duration(i)*interval/pauses)
		before = len(seen.all())
		eventually(t, "two writes after a pause", func() bool { return len(seen.all()) >= before+2 })
	}
	all := seen.all()
	for i, w := range all {
		if age := w.at.Sub(w.checked); age > maxAge+noise || w.checked.IsZero() {
			t.Errorf("write %d carries a probe %v old, allowed %v", i, age, maxAge)
		}
		if i > 0 && w.at.Sub(all[i-1].at) < interval-interval/10-noise {
			t.Errorf("write %d came %v after the one before", i, w.at.Sub(all[i-1].at))
		}
		if i > 0 && !w.checked.After(all[i-1].checked) {
			t.Errorf("lastChecked goes back at write %d", i)
		}
	}
}

// stopFor pauses a process with SIGSTOP.
func stopFor(t *testing.T, p *os.Process, d time.Duration) {
	t.Helper()
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		args  []string
		code  int
		lines int
		text  string
	}{
		{"help", []string{"--help"}, 0, 0, "Examples:"},
		{"version", []string{"--version"}, 0, 0, "Kubernetes 1."},
		{"three mistakes", nil, entry.ExitUsage, 3, "kms-health-reporter: --node-name is required\n"},
		{"no kubeconfig", []string{"--kms-sockets=unix:///a/kms-1.sock", "--node-name=n", "--kubeconfig=/nonexistent"}, entry.ExitFailed, 1, "read kubeconfig /nonexistent"},
		{"not in a cluster", []string{"--kms-sockets=unix:///a/kms-1.sock", "--node-name=n", "--connectivity=service"}, entry.ExitFailed, 1, "in-cluster configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(program, tt.args...)
			cmd.Env = []string{} // not in a cluster
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.text) {
				t.Errorf("exit %d, expected %d with %q:\n%s", code, tt.code, tt.text, out)
			}
			if n := bytes.Count(out, []byte("\n")); tt.lines > 0 && n != tt.lines {
				t.Errorf("%d lines, expected %d:\n%s", n, tt.lines, out)
			}
		})
	}
}
