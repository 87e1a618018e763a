package recorder

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/kmsharness/kmsharness/harness/cluster"
	"github.com/kmsharness/kmsharness/harness/history"
	"github.com/kmsharness/kmsharness/harness/undertest"
	"github.com/kmsharness/kmsharness/internal/poll"
)

// watchSockets records the files of the sockets of each node's plugins when they change, until the recorder ends.
func (r *Recorder) watchSockets() {
	last := map[string][]history.Socket{}
	_ = poll.Until(r.ctx, r.controlPlane.Traits.Timing.Interval/2, func() (bool, error) {
		for _, n := range r.nodes.List() {
			if now := socketsOf(n); !slices.Equal(now, last[n.Name]) {
				last[n.Name] = now
				r.to.Record(time.Now(), "sockets/"+n.Name, &history.Sockets{Node: n.Name, Plugins: now})
			}
		}
		return false, nil
	})
}

// sockets are the files as the node's API server has them: their folder on this machine is mounted there. Behind a fake plugin the file is that of the plugin
// under test, because the harness chooses the mode of the other.
func socketsOf(n *cluster.Node) (all []history.Socket) {
	for _, g := range n.Plugins() {
		info, err := os.Stat(cmp.Or(g.Instance[undertest.PlaceSocket], g.Socket))
		if err != nil || info.Mode().Type() != fs.ModeSocket {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			all = append(all, history.Socket{KeyID: g.KeyID, Path: filepath.Join(n.ReporterPlace.SocketDir, filepath.Base(g.Socket)),
				Mode: fmt.Sprintf("%03o", info.Mode().Perm()), UID: int(owner.Uid), GID: int(owner.Gid), User: g.User})
		}
	}
	return all
}
