package control_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/fakeplugin/control"
	"github.com/kmsharness/kmsharness/fakeplugin/control/client"
	"github.com/kmsharness/kmsharness/fakeplugin/endpoint"
	"github.com/kmsharness/kmsharness/fakeplugin/httpjson"
	"github.com/kmsharness/kmsharness/fakeplugin/journal"
	"github.com/kmsharness/kmsharness/fakeplugin/plugin"
	"github.com/kmsharness/kmsharness/fakeplugin/remotekms"
	"github.com/kmsharness/kmsharness/fakeplugin/server"
	"github.com/kmsharness/kmsharness/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAPI is the API of a plugin that runs.
func newAPI(t testing.TB) control.API {
	t.Helper()
	g := NewWithT(t)
	kms, err := remotekms.New(remotekms.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	p := plugin.New(plugin.Options{Name: "cp-1/1", Key: "key-1", Service: kms})
	g.Expect(p.Poll(context.Background())).To(Succeed())
	calls := journal.New[journal.Call](100, nil)
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "kms-1.sock")}
	s := server.New(server.Options{Listen: at, Node: "cp-1", KeyID: "1", Plugin: &plugin.Service{Plugin: p}, Journal: calls})
	g.Expect(s.Start()).To(Succeed())
	background(t, s.Run)
	return control.API{Instance: s, Keys: control.PluginKeys{Plugin: p}, Journal: calls}
}

// background runs f until the test ends.
func background(t testing.TB, f func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
}

// connect is a client of api over a real socket.
func connect(t testing.TB, api control.API, token string) *client.Client {
	t.Helper()
	g := NewWithT(t)
	at := endpoint.Endpoint{Network: "unix", Address: filepath.Join(t.TempDir(), "control.sock")}
	l, err := endpoint.Listen(host.Host{}, at, endpoint.DefaultMode)
	g.Expect(err).NotTo(HaveOccurred())
	background(t, func(ctx context.Context) error { return httpjson.Serve(ctx, host.Host{}, l, api.Handler()) })
	c, err := client.New(host.Host{}, at.String(), token)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(c.Close)
	return c
}

// ask makes one request without a socket.
func ask(h http.Handler, method, path, body string) (status int, answer string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, bytes.NewBufferString(body)))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		return 0, err.Error()
	}
	return w.Code, string(b)
}
