package local

import (
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kmsharness/kmsharness/harness/assets"
	"github.com/kmsharness/kmsharness/harness/backend/live"
	"github.com/kmsharness/kmsharness/harness/undertest"
)

// Options of the backend. The zero value works: this project's own reporter and aggregator, and binaries of the
// control plane from wherever harness/assets finds them.
type Options struct {
	undertest.System
	// Manifest may change a manifest before it is installed: a cluster that is set up wrongly shows what a run makes of it.
	Manifest func(*unstructured.Unstructured)
	// Assets says where etcd and kube-apiserver come from.
	Assets assets.Options
	// Idle is how many control planes are kept for later scenarios while none uses them; 0 means DefaultIdle. Each
	// costs about 300 MB per API server.
	Idle int
}

// DefaultIdle keeps the plane that was used last. One of three API servers that nobody uses still takes a tenth of two processors.
const DefaultIdle = 1

func (o Options) validate() error {
	if err := o.Validate(); err != nil {
		return err
	}
	if o.Reporter.MountSockets && os.Geteuid() != 0 {
		return undertest.Wrong("reporter.mountSockets", "a mount namespace for each reporter needs root: run as root, or let the reporter take its sockets from {sockets}")
	}
	return live.CheckPrograms(o.System, live.Findable)
}

const (
	// Tolerance is what a busy machine with 2 cores may add to any bound: some ten processes share them, and one
	// API server start (2 s of CPU) beside a running scenario delays everybody else by a few hundred milliseconds.
	Tolerance = 500 * time.Millisecond

	// bootTimeout bounds a boot, which takes 3 to 10 s; first starts from a cold disk take longer.
	bootTimeout = 2 * time.Minute
	// encryptionPoll is how often API servers look for a changed encryption configuration, where the binary can be told.
	encryptionPoll = 500 * time.Millisecond
	// reloadGrace is for an API server that is not starved to load a configuration between two scenarios: two looks, and a call of each plugin.
	// Where it is not enough, it is started anew.
	reloadGrace = 3 * time.Second
)
