package kind

import (
	"time"

	"github.com/kmsharness/kmsharness/harness/undertest"
)

// Options of the backend. The zero value works: this project's own images, the node image that can be had.
type Options struct {
	undertest.System
	// NodeImage of the clusters; empty: see harness/backend/kind/image.
	NodeImage string
}

const (
	// Tolerance is what a busy machine with 2 cores may add to any bound: three kubelets, controller managers and
	// schedulers are beside what the local backend runs.
	Tolerance = time.Second
	// maxNodes is the most that was tried; 400 MB of memory each.
	maxNodes = 5
	// bootTimeout bounds a boot: 75 s for three nodes, half of that again for a busy machine, and the API servers' restart.
	bootTimeout = 8 * time.Minute
	// encryptionPoll is how often an API server of our own node image looks for a changed encryption configuration; a
	// stock one looks once a minute.
	encryptionPoll = 500 * time.Millisecond
)

// firstKeyID is that of the plugin with which API servers start for the first time.
const firstKeyID = "1"

// resetTimeout bounds making a plane new for a scenario; the longest part is an API server that starts.
const resetTimeout = 2 * time.Minute
