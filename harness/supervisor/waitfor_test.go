package supervisor_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/kmsharness/kmsharness/harness/supervisor"
)

// apiServer answers /readyz with what it is told, over TLS with a certificate that nobody knows.
func apiServer(t *testing.T) (url string, code, asked *atomic.Int32) {
	t.Helper()
	code, asked = new(atomic.Int32), new(atomic.Int32)
	code.Store(http.StatusInternalServerError)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(code.Load()))
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // a wait that is cut short may cut a handshake short
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL + "/readyz", code, asked
}

func TestWaitsForTheURL(t *testing.T) {
	url, code, asked := apiServer(t)
	c := run(t, newFolder(t), polite, "--wait-for", url)
	until(t, "two questions", func() bool { return asked.Load() >= 2 })
	if s := c.state(supervisor.Waiting); s.Starts != 0 || s.PID != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := c.client.Pause(t.Context()); !refused(err, "waiting") {
		t.Errorf("pause: %v", err)
	}
	code.Store(http.StatusOK)
	c.said("up", 1)
	c.state(supervisor.Running)
	// Later starts do not wait: they are asked for.
	must(t)(c.client.Stop(t.Context()))
	code.Store(http.StatusInternalServerError)
	if s := must(t)(c.client.Start(t.Context())); s.State != supervisor.Running {
		t.Errorf("%+v", s)
	}
	c.signal(syscall.SIGTERM)
	c.exit()
	if text := c.output.String(); !strings.Contains(text, "waiting for "+url+": it answers 500") {
		t.Errorf("it does not say what it waits for: %q", text)
	}
}

func TestDecidedWhileWaiting(t *testing.T) {
	url, code, asked := apiServer(t)
	c := run(t, newFolder(t), polite, "--wait-for", url)
	c.state(supervisor.Waiting)
	if s := must(t)(c.client.Stop(t.Context())); s.State != supervisor.Stopped {
		t.Errorf("%+v", s)
	}
	code.Store(http.StatusOK)
	if s := must(t)(c.client.Start(t.Context())); s.State != supervisor.Running || s.Starts != 1 {
		t.Errorf("%+v", s)
	}
	same(t, "journal", c.journal(), "started")
	c.signal(syscall.SIGTERM)
	c.exit()
	if asked.Load() > 2 {
		t.Errorf("it asked %d times although it was decided for it", asked.Load())
	}
}

func TestEndsWhileWaiting(t *testing.T) {
	url, _, _ := apiServer(t)
	c := run(t, newFolder(t), polite, "--wait-for", url)
	c.state(supervisor.Waiting)
	c.signal(syscall.SIGTERM)
	if code := c.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if text, err := os.ReadFile(c.file("journal")); err != nil || len(text) != 0 {
		t.Errorf("the journal of a program that never ran: %q, %v", text, err)
	}
}
