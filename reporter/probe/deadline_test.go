package probe

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kmsapi "k8s.io/kms/apis/v2"

	"github.com/kmsharness/kmsharness/contract"
	"github.com/kmsharness/kmsharness/internal/host"
)

const (
	short = 200 * time.Millisecond
	noise = 3 * time.Second // what a loaded machine may add to a deadline
)

func expectHang(t *testing.T, e contract.Entry) {
	t.Helper()
	if e.Status != contract.StatusError || !strings.HasPrefix(e.Detail, "DeadlineExceeded: ") {
		t.Fatalf("%s %q, expected error DeadlineExceeded", e.Status, e.Detail)
	}
}

func TestHangMeetsTheDeadlineAndTheNextProbeWorks(t *testing.T) {
	release := make(chan struct{})
	f := &fake{status: hangUntil(release)}
	p := serve(t, f)
	began := time.Now()
	expectHang(t, one(t, p, short))
	if took := time.Since(began); took < short || took > short+noise {
		t.Fatalf("a hang took %v with a deadline of %v", took, short)
	}
	close(release)
	if e := one(t, p, ample); e.Status != contract.StatusHealthy {
		t.Fatalf("right after the release: %s %q", e.Status, e.Detail)
	}
}

func TestSlowBelowAndAboveTheDeadline(t *testing.T) {
	p := serve(t, &fake{status: slow(short)})
	if e := one(t, p, ample); e.Status != contract.StatusHealthy {
		t.Fatalf("slow but below the deadline: %s %q", e.Status, e.Detail)
	}
	expectHang(t, one(t, p, short/4))
}

// TestOneHungPluginDelaysNobody: the others answer while one hangs for the whole deadline; that hang is the only cost.
func TestOneHungPluginDelaysNobody(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hung, other, dead := serve(t, &fake{status: hangUntil(release)}), serve(t, &fake{status: good}), Plugin{KeyID: "9", Socket: "/nonexistent/kms-9.sock"}
	results := New(host.Host{}, []Plugin{hung, other, dead}, noise).All(t.Context())
	if results[0].Failure == nil || results[0].Failure.Code != "DeadlineExceeded" {
		t.Errorf("hung: %+v", results[0])
	}
	if results[1].Answer == nil || results[1].Duration > noise/2 {
		t.Errorf("beside a hang: %+v", results[1])
	}
	if results[2].Failure == nil || results[2].Duration > noise/2 || results[2].KeyID != "9" {
		t.Errorf("dead beside a hang: %+v", results[2])
	}
	for _, r := range results[1:] {
		if d := r.Started.Sub(results[0].Started).Abs(); d > noise/2 {
			t.Errorf("%s began %v apart from the hung one", r.KeyID, d)
		}
	}
}

// TestServerThatNeverSpeaks: connections are accepted by the kernel, nobody answers them (a stopped process).
func TestServerThatNeverSpeaks(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kms-2.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	expectHang(t, one(t, Plugin{KeyID: "2", Socket: socket}, short))
}

// TestRestartIsSeenAtTheNextProbe: no back-off from earlier failures hides the recovery.
func TestRestartIsSeenAtTheNextProbe(t *testing.T) {
	p := Plugin{KeyID: "2", Socket: filepath.Join(t.TempDir(), "kms-2.sock")}
	stop := serveOn(t, &fake{status: good}, p.Socket)
	prober := New(host.Host{}, []Plugin{p}, ample)
	probe := func() contract.Entry { return prober.All(t.Context())[0].Entry(time.Second) }
	if e := probe(); e.Status != contract.StatusHealthy {
		t.Fatalf("at first: %s %q", e.Status, e.Detail)
	}
	stop()
	for range 5 {
		if e := probe(); e.Status != contract.StatusError {
			t.Fatalf("while it is down: %s", e.Status)
		}
	}
	serveOn(t, &fake{status: good}, p.Socket)
	if e := probe(); e.Status != contract.StatusHealthy {
		t.Fatalf("right after its return: %s %q", e.Status, e.Detail)
	}
}

func TestCancelEndsAProbeAtOnce(t *testing.T) {
	release, called := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	p := serve(t, &fake{status: func(ctx context.Context) (*kmsapi.StatusResponse, error) {
		close(called)
		return hangUntil(release)(ctx)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-called; cancel() }()
	began := time.Now()
	New(host.Host{}, []Plugin{p}, ample).All(ctx)
	if took := time.Since(began); took > ample/2 {
		t.Errorf("a cancelled probe took %v", took)
	}
}
