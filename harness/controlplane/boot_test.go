package controlplane_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kmsharness/kmsharness/harness/assets/assetstest"
	"github.com/kmsharness/kmsharness/harness/controlplane"
	"github.com/kmsharness/kmsharness/harness/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a boot on a machine that is busy with other things.
const patience = 3 * time.Minute

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// world is a control plane with everything below it.
type world struct {
	*controlplane.ControlPlane
	logs       string
	supervisor *process.Supervisor
	dir        *process.RunDir
}

// newWorld makes a control plane that is gone when the test ends, and whose logs are shown when the test failed.
func newWorld(t testing.TB, change func(*controlplane.Options), servers ...controlplane.ServerSpec) world {
	t.Helper()
	opts := controlplane.Options{Binaries: assetstest.Find(t), LogDir: t.TempDir(), AuditPolicy: []byte(auditPolicy), Servers: servers}
	dir, err := process.NewRunDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	opts.Dir = dir.Path
	opts.Supervisor = process.New(process.Options{RunDir: dir.Path})
	if change != nil {
		change(&opts)
	}
	cp, err := controlplane.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	w := world{cp, opts.LogDir, opts.Supervisor, dir}
	t.Cleanup(func() {
		w.end(t)
		if t.Failed() {
			showLogs(t, opts.LogDir)
		}
	})
	return w
}

func (w world) end(t testing.TB) {
	for _, err := range []error{w.Close(context.Background()), w.supervisor.Close(context.Background()), w.dir.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
}

func showLogs(t testing.TB, dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		t.Logf("the end of %s:\n%s", filepath.Base(f), text[max(0, len(text)-3000):])
	}
}

func (w world) start(t testing.TB, until controlplane.Readiness) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := time.Now()
	if err := w.Start(ctx, until); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

func specs(n int) []controlplane.ServerSpec {
	all := make([]controlplane.ServerSpec, n)
	for i := range all {
		all[i].Name = fmt.Sprintf("cp-%d", i+1)
	}
	return all
}

func TestBoot(t *testing.T) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d API servers", n), func(t *testing.T) {
			if testing.Short() && n > 1 {
				t.Skip("it boots several API servers: make nightly")
			}
			w := newWorld(t, nil, specs(n)...)
			t.Logf("ready after %v", w.start(t, controlplane.Ready))
		})
	}
}
